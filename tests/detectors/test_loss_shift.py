from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity

from .runs import at, falling, findings, only, run_of


def shifted(factor: float, begin: int = 200, n: int = 400, **noise: object) -> np.ndarray:
    x = falling(n=n, **noise)
    x[begin:] *= factor
    return x


@pytest.mark.parametrize("begin", [200, 250, 330])
def test_a_step_up_is_found_where_it_is(begin):
    found = only("loss_shift", run_of({"train/loss": shifted(1.1, begin)}))
    assert abs(found.start_step - at(begin)) <= 30
    assert found.severity is Severity.WARNING
    assert found.evidence["after"] / found.evidence["baseline"] == pytest.approx(1.1, abs=0.05)
    assert found.message.endswith("stayed up to the end.")


@pytest.mark.parametrize("seed", range(5))
def test_a_step_of_three_sigma_is_found_although_no_single_point_stands_out(seed):
    x = falling(n=2000, seed=seed, sd=0.03)
    x[1200:] *= 1.1
    found = only("loss_shift", run_of({"train/loss": x}))
    assert abs(found.start_step - at(1200)) <= 100


def test_a_step_of_less_than_the_limit_is_left_out_and_may_be_asked_for():
    x = falling(n=2000, sd=0.01)
    x[1200:] *= 1.04
    assert findings("loss_shift", run_of({"train/loss": x})) == []
    assert len(findings("loss_shift", run_of({"train/loss": x}), shift_rise=0.02)) == 1


def test_a_step_down_is_no_shift():
    assert findings("loss_shift", run_of({"train/loss": shifted(0.7)})) == []


@pytest.mark.parametrize("seed", range(10))
def test_a_wandering_level_is_no_shift(seed):
    """Autocorrelation is what makes sums alarm; the threshold grows with it."""
    assert findings("loss_shift", run_of({"train/loss": falling(n=1000, seed=seed, sd=0.03, phi=0.8)})) == []


def test_a_convex_decay_is_no_shift():
    x = 2.0 + 8.0 * (1.0 + np.arange(1000.0)) ** -0.5
    x *= 1.0 + 0.01 * np.random.default_rng(0).normal(size=1000)
    assert findings("loss_shift", run_of({"train/loss": x})) == []


def test_known_miss_a_step_in_the_first_sixty_points():
    assert findings("loss_shift", run_of({"train/loss": shifted(1.1, 30)})) == []


def test_known_false_positive_a_curriculum_that_gets_harder():
    """Longer sequences from the middle of the run on: meant, and a shift all the same."""
    found = only("loss_shift", run_of({"train/loss": shifted(1.1)}))
    assert any("on purpose" in fix for fix in found.fixes)
