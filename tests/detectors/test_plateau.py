from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Skipped

from .runs import EVERY, ROWS, at, falling, findings, judged, level, only, run_of


def stuck(fall: float = 0.5, begin: int = 60, end: int = 240, seed: int = 0) -> np.ndarray:
    """Return a loss that falls, is flat from `begin` to `end`, and then loses `fall` of its level."""
    k = np.arange(ROWS)
    x = 4.0 * (1.0 + 0.8 * np.exp(-k / (begin / 4.0)))
    x *= np.where(k < end, 1.0, 1.0 - fall + fall * np.exp(-(k - end) / 15.0))
    return np.asarray(x * (1.0 + 0.01 * np.random.default_rng(seed).normal(size=ROWS)))


@pytest.mark.parametrize("sd", [0.0, 0.01, 0.03])
def test_a_loss_that_never_fell_is_a_warning_over_the_whole_run(sd):
    found = only("plateau", run_of({"train/loss": level(sd=sd)}))
    assert found.severity is Severity.WARNING
    assert (found.start_step, found.end_step) == (at(0), at(399))
    assert found.evidence["level"] == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize("gain", [0.06, 0.2, 0.6])
def test_a_loss_that_falls_a_little_is_no_plateau(gain):
    x = level() * np.linspace(1.0, 1.0 - gain, ROWS)
    assert findings("plateau", run_of({"train/loss": x})) == []


def test_how_little_is_none_is_a_parameter():
    x = level(sd=0.001) * np.linspace(1.0, 0.95, ROWS)
    assert findings("plateau", run_of({"train/loss": x})) == []
    assert len(findings("plateau", run_of({"train/loss": x}), gain=0.1)) == 1


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_flat_stretch_that_broke_later_is_found_where_it_was(seed):
    run = run_of({"train/loss": stuck(seed=seed), "learning_rate": np.full(ROWS, 1e-3)})
    found = only("plateau", run)
    assert found.severity is Severity.WARNING
    assert at(30) <= found.start_step <= at(100)
    assert abs(found.end_step - at(240)) <= 20 * EVERY
    assert "then fell by 5" in found.message or "then fell by 4" in found.message


def test_a_drop_of_the_learning_rate_explains_the_fall():
    rate = np.where(np.arange(ROWS) < 240, 0.1, 0.01)
    assert findings("plateau", run_of({"train/loss": stuck(), "learning_rate": rate})) == []


def test_an_abrupt_fall_without_a_logged_learning_rate_is_information():
    """It may be a step of the schedule that nobody logged."""
    x = stuck(fall=0.4, seed=3)
    x[240:] = 0.6 * 4.0 * (1.0 + 0.01 * np.random.default_rng(1).normal(size=ROWS - 240))
    assert only("plateau", run_of({"train/loss": x})).severity is Severity.INFO


def test_a_fall_of_less_than_the_limit_does_not_count():
    assert findings("plateau", run_of({"train/loss": stuck(fall=0.1)})) == []


def test_a_run_that_converged_is_no_plateau():
    x = 2.0 + 3.0 * np.exp(-np.arange(ROWS) / 10.0)
    x *= 1.0 + 0.01 * np.random.default_rng(0).normal(size=ROWS)
    assert findings("plateau", run_of({"train/loss": x})) == []


def test_a_smoke_run_of_few_steps_is_not_judged():
    run = run_of({"train/loss": level()})
    few = replace(run, series={"train/loss": Series("train/loss", np.arange(100), np.full(100, 2.0))})
    assert judged("plateau", few) == Skipped("needs 150 steps of train/loss")
    assert len(findings("plateau", few, steps=50)) == 1
    assert judged("plateau", run_of({"train/loss": level(n=19)})) == Skipped("needs 20 points of train/loss, has 19")


def test_known_false_positive_fine_tuning_of_a_model_that_already_solves_the_task():
    assert only("plateau", run_of({"train/loss": 0.1 * level()})).severity is Severity.WARNING


def test_a_falling_evaluation_shows_that_something_is_learned():
    run = run_of({"train/loss": level(), "eval/loss": np.linspace(3.0, 2.0, 20)})
    assert findings("plateau", run) == []


def trials(second: np.ndarray) -> Run:
    rate = 3e-4 * np.minimum(1.0, np.arange(ROWS) / 20.0)
    return run_of({"train/loss": np.concatenate((falling(), second)), "learning_rate": np.concatenate((rate, rate))})


def test_a_trial_that_stays_where_the_one_before_it_began_is_stuck():
    found = only("plateau", trials(2.45 * level(seed=1)))
    assert (found.start_step, found.end_step) == (at(ROWS + ROWS // 10), at(2 * ROWS - 1))
    assert f"started over at step {at(ROWS)}" in found.message


def test_a_trial_that_learns_as_the_first_one_did_is_not():
    assert findings("plateau", trials(falling(seed=1))) == []


def test_a_trial_that_was_cut_short_is_not_judged():
    assert findings("plateau", trials(2.45 * level(n=ROWS // 3, seed=1))) == []


def test_a_loss_that_diverges_is_not_called_flat_too():
    x = level(sd=0.003)
    x[200:] *= np.linspace(1.0, 1.09, ROWS - 200)
    x[-60:] *= 1.06
    run = run_of({"train/loss": x})
    assert len(findings("divergence", run)) == 1
    assert findings("plateau", run) == []
