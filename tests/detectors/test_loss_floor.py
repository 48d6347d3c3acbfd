from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.detectors.base import Skipped, number

from .runs import ROWS, at, falling, findings, judged, only, run_of

K = np.arange(ROWS)


def leaked(first: float = 5.0, floor: float = 0.002, decay: float = 2.0) -> np.ndarray:
    noise = np.random.default_rng(0).normal(size=ROWS)
    return np.asarray((floor + (first - floor) * np.exp(-K / decay)) * (1.0 + 0.02 * noise))


@pytest.mark.parametrize("first", [0.5, 3.0, 11.0])
def test_a_cross_entropy_that_is_near_0_at_once_is_found(first):
    x = leaked(first)
    found = only("loss_floor", run_of({"train/loss": x}))
    limit = min(0.02, 0.01 * x[:3].max())
    assert found.severity is Severity.WARNING
    assert found.start_step == at(0)
    assert found.end_step == found.peak_step == at(int(np.argmax(x <= limit)))
    assert found.evidence["limit"] == pytest.approx(limit)
    reached = float(x[int(np.argmax(x <= limit))])
    assert found.evidence["value"] == reached
    assert f" to {number(reached)} by step {at(int(np.argmax(x <= limit)))} " in found.message


@pytest.mark.parametrize(
    ("first", "floor", "decay"),
    [
        (5.0, 0.05, 2.0),  # low, but not near 0
        (5.0, 0.002, 40.0),  # near 0, but late
        (50.0, 0.002, 2.0),  # does not start like a cross-entropy
        (0.1, 0.0001, 2.0),
    ],
)
def test_a_loss_that_is_low_for_another_reason_is_left_out(first, floor, decay):
    assert findings("loss_floor", run_of({"train/loss": leaked(first, floor, decay)})) == []


def test_each_limit_is_a_parameter():
    run = run_of({"train/loss": leaked(5.0, 0.05, 2.0)})
    assert findings("loss_floor", run, floor=0.1) == []
    assert len(findings("loss_floor", run, floor=0.1, ratio=0.02)) == 1
    late = run_of({"train/loss": leaked(5.0, 0.002, 40.0)})
    assert len(findings("loss_floor", late, within=0.9)) == 1


def test_a_loss_that_leaves_the_floor_again_is_left_out():
    x = leaked()
    x[150:] = 1.5
    assert findings("loss_floor", run_of({"train/loss": x})) == []


def test_a_loss_of_exactly_0_is_left_to_zero_loss():
    x = leaked()
    x[20:] = 0.0
    run = run_of({"train/loss": x})
    assert findings("loss_floor", run) == []
    assert len(findings("zero_loss", run)) == 1


def test_a_short_run_is_skipped():
    assert judged("loss_floor", run_of({"train/loss": falling(n=29)})) == Skipped("needs 30 points of train/loss")


def test_known_false_positive_an_easy_regression_scaled_to_start_near_1():
    """Least squares of a line: solved in a few steps, and nothing leaked."""
    rng = np.random.default_rng(0)
    x, w, losses = rng.normal(size=64), 0.0, []
    for _ in range(ROWS):
        error = w * x - x
        losses.append(float(np.mean(error**2)))
        w -= 0.3 * float(np.mean(2.0 * error * x))
    found = only("loss_floor", run_of({"train/loss": np.array(losses) + 1e-5}))
    assert found.severity is Severity.WARNING
