from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.detectors.base import Skipped

from .runs import falling, findings, judged, only, run_of


def evaluations(sd: float, n: int = 200, fall: float = 0.0, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=n).clip(-2.5, 2.5)
    return np.asarray(2.0 * (1.0 + sd * noise) + fall * np.exp(-np.arange(n) / (n / 4.0)))


def test_the_noise_is_measured_and_said_with_what_it_means():
    run = run_of({"eval/loss": evaluations(0.25)})
    found = only("eval_noise", run)
    assert found.severity is Severity.WARNING
    assert found.evidence["relative_noise"] == pytest.approx(0.25, rel=0.2)
    assert (found.start_step, found.end_step) == (run.first_step, run.last_step)
    assert found.peak_step == run.series["eval/loss"].step[int(np.argmax(run.series["eval/loss"].value))]
    assert "mean nothing" in found.message


@pytest.mark.parametrize("sd", [0.01, 0.05, 0.1])
def test_usual_noise_is_left_out(sd):
    assert findings("eval_noise", run_of({"eval/loss": evaluations(sd)})) == []


def test_noise_that_is_small_beside_the_improvement_is_left_out():
    assert findings("eval_noise", run_of({"eval/loss": evaluations(0.2, fall=12.0)})) == []


def test_how_much_is_too_much_is_a_parameter():
    run = run_of({"eval/loss": evaluations(0.1)})
    assert findings("eval_noise", run) == []
    assert len(findings("eval_noise", run, noise=0.05)) == 1


def test_a_smooth_trend_is_no_noise():
    assert findings("eval_noise", run_of({"eval/loss": 0.5 + 8.0 * np.exp(-np.arange(30) / 4.0)})) == []


def test_a_loss_that_may_be_negative_is_not_judged():
    assert judged("eval_noise", run_of({"eval/loss": evaluations(0.25) - 2.0})) == Skipped(
        "needs an evaluation loss above 0"
    )


def test_too_few_evaluations_are_not_judged():
    assert judged("eval_noise", run_of({"eval/loss": [1.0] * 7})) == Skipped("needs 8 evaluations, has 7")
    assert judged("eval_noise", run_of({"train/loss": falling()})) == Skipped("needs eval/loss")
