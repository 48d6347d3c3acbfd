from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.detectors.base import Skipped

from .runs import EVERY, ROWS, at, falling, findings, judged, level, only, run_of

K = np.arange(ROWS)


@pytest.mark.parametrize("period", [8.0, 20.0, 35.0])
def test_a_swing_is_found_with_its_period_and_its_amplitude(period):
    x = level(sd=0.03) * (1.0 + 0.3 * np.sin(2.0 * np.pi * K / period))
    found = only("oscillation", run_of({"train/loss": x}))
    assert found.severity is Severity.WARNING
    assert (found.start_step, found.end_step) == (at(ROWS // 3), at(ROWS - 1))
    assert found.evidence["period_steps"] == pytest.approx(period * EVERY, rel=0.1)
    assert found.evidence["amplitude"] == pytest.approx(0.3, rel=0.35)


@pytest.mark.parametrize(("amplitude", "expected"), [(0.05, 0), (0.08, 0), (0.25, 1)])
def test_a_small_swing_is_left_out(amplitude, expected):
    x = level(sd=0.02) * (1.0 + amplitude * np.sin(K / 3.0))
    assert len(findings("oscillation", run_of({"train/loss": x}))) == expected


def test_how_large_a_swing_counts_is_a_parameter():
    run = run_of({"train/loss": level(sd=0.02) * (1.0 + 0.08 * np.sin(K / 3.0))})
    assert findings("oscillation", run) == []
    assert len(findings("oscillation", run, amplitude=0.04)) == 1


@pytest.mark.parametrize("seed", range(10))
def test_large_noise_without_a_period_is_no_swing(seed):
    for phi in (0.0, 0.6):
        assert findings("oscillation", run_of({"train/loss": level(seed=seed, sd=0.2, phi=phi)})) == [], phi


def test_one_burst_is_no_swing():
    x = level(sd=0.01)
    x[250:280] *= 1.0 + np.sin(np.linspace(0, 6 * np.pi, 30))
    assert findings("oscillation", run_of({"train/loss": x})) == []


def test_a_swing_that_dies_out_in_the_first_third_is_no_swing():
    x = falling() * (1.0 + 0.5 * np.exp(-K / 25.0) * np.sin(K / 2.0))
    assert findings("oscillation", run_of({"train/loss": x})) == []


def test_a_loss_around_0_is_not_judged():
    assert findings("oscillation", run_of({"train/loss": 0.3 * np.sin(K / 3.0) - 0.5})) == []


def test_a_short_run_is_skipped():
    assert judged("oscillation", run_of({"train/loss": falling(n=59)})) == Skipped("needs 60 points of train/loss")


def test_a_long_run_is_thinned_and_found_all_the_same():
    n = 30_000
    x = level(n=n, sd=0.05) * (1.0 + 0.3 * np.sin(2.0 * np.pi * np.arange(n) / 500.0))
    found = only("oscillation", run_of({"train/loss": x}))
    assert found.evidence["period_steps"] == pytest.approx(500.0 * EVERY, rel=0.1)


def test_known_false_positive_a_cyclic_learning_rate_with_a_very_large_range():
    """Triangular cycles that move the loss by a fifth of its level: asked for, and a swing all the same."""
    cycle = np.abs((K / 20.0) % 2.0 - 1.0)
    run = run_of({"train/loss": level(sd=0.01) * (1.0 + 0.5 * cycle), "learning_rate": 1e-5 + 1e-2 * cycle})
    assert only("oscillation", run).severity is Severity.WARNING


def test_noise_that_grew_is_told_with_its_size_before_and_after():
    x = level(n=800, sd=0.02)
    x[600:] = 2.0 + 5.0 * (x[600:] - 2.0)
    found = only("oscillation", run_of({"train/loss": x}))
    assert found.severity is Severity.WARNING
    assert found.title == "Noise of the loss grew"
    assert abs(found.start_step - at(600)) <= 15 * EVERY
    assert found.end_step == at(799)
    assert found.evidence["noise"] == pytest.approx(0.2, rel=0.3)
    assert found.evidence["noise_before"] == pytest.approx(0.05, rel=0.3)


def test_a_spike_that_decays_is_no_grown_noise():
    x = level(n=800, sd=0.01)
    x[600:] += 4.0 * np.exp(-np.arange(200) / 15.0)
    assert findings("oscillation", run_of({"train/loss": x})) == []
