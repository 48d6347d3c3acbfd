"""Which findings of a run its baseline has, too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from smoke_runs import STEPS, smoke_run

from trainscope.core.finding import Finding, Severity
from trainscope.core.settings import Settings
from trainscope.diagnosis.compare import same_curve
from trainscope.report.against import analyze_against

from .runs import said

RISE = 4.0 + 1.5 * np.arange(STEPS) / STEPS


def rising(shift: float = 0.0, seed: int = 0, **facts: object):
    noise = 0.1 * np.random.default_rng(seed).standard_normal(STEPS)
    hashes = {name: np.arange(STEPS) + 1000.0 * seed for name in ("smoke/batch_hash", "smoke/target_hash")}
    return smoke_run({"train/loss": RISE + shift * np.arange(STEPS) / STEPS + noise, **hashes}, **facts)


def found(start: int, end: int, metric: str = "train/loss") -> Finding:
    return Finding("divergence", Severity.WARNING, "t", "m", metric, start_step=start, end_step=end)


def test_a_loss_that_rises_as_the_baselines_does_under_another_seed_is_no_news():
    base = rising(seed=0)
    assert same_curve(found(40, 149), rising(seed=1), [base])
    assert not same_curve(found(40, 149), rising(shift=1.0, seed=1), [base])


def test_a_few_steps_and_what_is_no_loss_are_told_by_their_very_curve():
    assert not same_curve(found(40, 50), rising(seed=1), [rising()])
    assert not same_curve(
        found(40, 149, "train/grad_norm_after_clip"),
        smoke_run(),
        [smoke_run({"train/grad_norm_after_clip": np.full(STEPS, 1.02)})],
    )


@pytest.mark.parametrize(
    ("detector", "metric"),
    [
        ("clipping", "train/grad_norm_after_clip"),
        ("non_finite_origin", "train/loss"),
        ("optimizer_state", "optimizer/m_norm"),
        ("skipped_batches", "smoke/batch_hash"),
    ],
)
def test_a_fault_that_is_counted_is_news_though_it_leaves_the_curve_as_it_was(detector, metric):
    run, base = smoke_run(), smoke_run()
    assert not same_curve(replace(found(40, 149, metric), detector=detector), run, [base])
    assert same_curve(found(40, 149, metric), run, [base])


def test_clipping_too_early_fails_the_gate_though_nothing_was_clipped_in_either_run():
    early = smoke_run({"smoke/clip_backward_calls": np.zeros(STEPS)})
    analysis = analyze_against([early], [smoke_run()], Settings(gate="new"), "base")
    (run,) = analysis.document.runs
    assert {f.detector: f.status for f in run.findings if f.severity == "error"} == {"clipping": "new"}
    assert analysis.document.verdict.status == "fail"


@pytest.mark.parametrize("name", ["smoke/learning_rate_min", "smoke/learning_rate_max"])
def test_a_group_whose_learning_rate_is_another_is_found(name):
    flat = np.full(STEPS, 1e-3)
    base, run = smoke_run({name: flat}), smoke_run({name: np.where(np.arange(STEPS) < 20, 5e-4, 1e-3)})
    (one,) = said(run, base)["learning_rate_change"]
    assert one.metric == name
    assert said(smoke_run({name: flat * 1.01}), base) == {}
