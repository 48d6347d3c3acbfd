"""A batch unlike the others of its run is named; what varies by itself is not."""

from __future__ import annotations

import numpy as np

from .runs import run_of
from .smoke_runs import found, single, skipped, smoke_run

N = 300


def series(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "batch/size": np.full(N, 576.0),
        "batch/token_entropy": 3.1 + 0.08 * rng.standard_normal(N),
        "batch/repetition": 0.15 + 0.025 * rng.gamma(2.0, size=N),
        "batch/padding": 0.02 * rng.exponential(size=N),
    }


def of(**changed):
    values = series()
    for name, (steps, value) in changed.items():
        values[f"batch/{name}"][steps] = value
    return smoke_run(values)


def test_garbage_is_named_with_its_steps():
    finding = single("bad_batch", of(token_entropy=(slice(180, 183), 4.54)))
    assert (finding.start_step, finding.end_step, finding.severity.label) == (180, 182, "warning")
    assert finding.message.startswith("3 batches of steps 180-182 look like garbage: a token entropy of 4.54 nat")
    assert finding.evidence["steps"] == "180-182"


def test_repetition_and_padding_are_named():
    assert "looks like repetition" in single("bad_batch", of(repetition=(99, 1.0))).message
    assert "looks like padding" in single("bad_batch", of(padding=(99, 0.9))).message
    assert "garbage" not in single("bad_batch", of(token_entropy=(99, 0.4))).message


def test_batches_far_apart_are_findings_of_their_own():
    bad = found("bad_batch", of(token_entropy=([50, 52, 200], 5.5)))
    assert [f.evidence["steps"] for f in bad] == ["50,52", "200"]
    assert "one of 2 such places" in bad[0].message


def test_healthy_batches_are_no_finding():
    rng = np.random.default_rng(0)
    for _ in range(40):
        values = series()
        values["batch/token_entropy"] = 3.1 + 0.08 * rng.standard_normal(N)
        values["batch/repetition"] = 0.1 + 0.03 * rng.gamma(2.0, size=N)
        values["batch/padding"] = 0.02 * rng.exponential(size=N)
        assert found("bad_batch", smoke_run(values)) == []


def test_known_false_positive_a_statistic_with_the_tail_of_student_t():
    noise = (np.random.default_rng([seed, N]).standard_t(3, N) for seed in range(40))
    bad = sum(bool(found("bad_batch", smoke_run({"batch/token_entropy": 3.0 + 0.08 * one}))) for one in noise)
    assert 0 < bad <= 6


def test_a_heavy_tail_is_this_runs_normal():
    values = series()
    values["batch/padding"] = np.random.default_rng(1).pareto(1.5, N).clip(0, 20) / 20
    assert found("bad_batch", smoke_run(values)) == []


def test_another_kind_of_data_is_no_bad_batch():
    values = series()
    values["batch/token_entropy"][200:] += 2.0
    assert found("bad_batch", smoke_run(values)) == []


def test_a_short_last_batch_is_no_bad_batch():
    values = series()
    values["batch/size"][[99, 199, 299]] = 48.0
    values["batch/token_entropy"][[99, 199, 299]] = 1.9
    assert found("bad_batch", smoke_run(values)) == []


def test_nan_in_a_batch_counts_at_once():
    run = smoke_run({"batch/mean": np.zeros(N), "batch/std": np.ones(N), "batch/non_finite": np.eye(1, N, 40)[0] / 9})
    finding = single("bad_batch", run)
    assert (finding.start_step, finding.metric) == (40, "batch/non_finite")
    assert "NaN or infinite" in finding.message


def test_numbers_of_another_scale_are_named_whatever_their_unit():
    rng = np.random.default_rng(0)
    for unit in (1e-6, 1.0, 1e6):
        deviation = unit * (1 + 0.005 * rng.standard_normal(N))
        deviation[120] = 255 * unit
        run = smoke_run({"batch/mean": unit * 0.01 * rng.standard_normal(N), "batch/std": deviation})
        assert single("bad_batch", run).start_step == 120


def test_batches_that_are_all_alike_have_no_odd_one():
    same = {"batch/token_entropy": np.full(N, 2.0), "batch/mean": np.zeros(N), "batch/std": np.zeros(N)}
    assert found("bad_batch", smoke_run(same)) == []


def test_without_statistics_or_with_few_steps_nothing_is_judged():
    assert "needs batch statistics" in skipped("bad_batch", run_of({"train/loss": np.ones(50)}))
    few = {name: value[:15] for name, value in series().items()}
    assert skipped("bad_batch", smoke_run(few)) == "needs 20 steps with batch statistics"
