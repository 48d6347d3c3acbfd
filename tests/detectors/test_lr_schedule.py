from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from synthetic import SCHEDULES, schedule

from trainscope.core.finding import Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Skipped

from .runs import ROWS, at, cosine, falling, findings, judged, level, run_of

T = np.linspace(0.0, 1.0, ROWS)


def rates(x: np.ndarray, **params: object) -> list:
    return findings("lr_schedule", run_of({"learning_rate": x}), **params)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("peak", [1e-6, 3e-4, 0.5])
def test_every_usual_schedule_is_left_alone(name, peak):
    run = run_of({"train/loss": falling(), "learning_rate": peak * schedule(name, T)})
    assert findings("lr_schedule", run) == []


@pytest.mark.parametrize("factor", [2.0, 4.0, 10.0])
@pytest.mark.parametrize("index", [60, 200, 350])
def test_a_jump_up_is_found_between_its_two_points(factor, index):
    x = cosine()
    x[index:] *= factor
    (found,) = rates(x)
    assert (found.title, found.severity) == ("Learning rate jumps", Severity.WARNING)
    assert (found.start_step, found.end_step, found.peak_step) == (at(index - 1), at(index), at(index))
    assert found.evidence["after"] / found.evidence["before"] == pytest.approx(factor, rel=0.02)


def test_a_flat_rate_that_leaps_and_comes_back_is_no_warm_up():
    x = np.full(ROWS, 3e-3)
    x[180:185] *= 30
    (found,) = rates(x)
    assert (found.title, found.start_step, found.peak_step) == ("Learning rate jumps", at(179), at(180))


def test_a_lower_rate_at_the_beginning_is_a_warm_up():
    x = np.full(ROWS, 3e-3)
    x[:20] = 1e-3
    x[300:] = 3e-4
    assert rates(x) == []


def test_how_large_a_jump_counts_is_a_parameter():
    x = cosine()
    x[200:] *= 1.3
    assert rates(x) == []
    assert len(rates(x, jump=1.2)) == 1


def test_a_jump_is_a_jump_whatever_the_unit():
    x = cosine()
    x[200:] *= 4.0
    for factor in (1e-6, 1e6):
        assert [f.start_step for f in rates(x * factor)] == [at(199)]


def test_a_schedule_that_starts_again_in_the_middle_is_a_restart():
    x = cosine()
    x[200:] = x[:200]
    (found,) = rates(x)
    assert found.title == "Learning rate restarts"
    assert (found.start_step, found.peak_step) == (at(199), at(200))
    assert at(215) <= found.end_step <= at(225)


def test_how_deep_a_fall_counts_is_a_parameter():
    """A fall to 60 % with a new ramp after it."""
    x = np.full(ROWS, 1e-3)
    x[200:240] = np.linspace(0.3e-3, 1e-3, 40)
    assert len(rates(x)) == 1
    assert rates(x, drop=0.2) == []


def test_cosine_restarts_of_growing_length_are_meant():
    phase = np.concatenate([np.linspace(0, 1, n, endpoint=False) for n in (60, 110, 230)])
    assert rates(1e-3 * (0.005 + 0.4975 * (1.0 + np.cos(np.pi * phase)))) == []


def test_a_restart_to_a_higher_peak_is_not_meant():
    phase = (T * 4.0) % 1.0
    x = 1e-3 * (0.005 + 0.4975 * (1.0 + np.cos(np.pi * phase)))
    x[300:] *= 3.0
    assert {f.title for f in rates(x)} == {"Learning rate jumps"}


def test_a_warm_up_logged_in_few_points_is_no_jump():
    x = 1e-3 * np.concatenate(([0.1, 0.4, 0.7, 1.0], np.linspace(1.0, 0.1, 60)))
    assert rates(x) == []


def test_steps_down_are_meant():
    assert rates(0.1 * np.where(T < 0.3, 1.0, np.where(T < 0.6, 0.1, 0.01))) == []


def from_scratch(peak: float, first: float = 5.0) -> Run:
    loss = falling() * first / 5.0
    return run_of({"train/loss": loss, "learning_rate": peak * (1.0 - 0.95 * T)})


@pytest.mark.parametrize(("peak", "expected"), [(5e-5, 0), (2e-4, 1), (5e-3, 1), (0.1, 0)])
def test_a_missing_warm_up_counts_in_the_range_of_adam(peak, expected):
    found = findings("lr_schedule", from_scratch(peak))
    assert [f.title for f in found] == ["No warm-up"] * expected
    assert all(f.start_step == at(0) and f.severity is Severity.WARNING for f in found)


def test_that_range_is_a_parameter():
    assert len(findings("lr_schedule", from_scratch(5e-5), min_peak=1e-5)) == 1
    assert len(findings("lr_schedule", from_scratch(0.1), max_peak=1.0)) == 1


def test_fine_tuning_needs_no_warm_up():
    run = run_of({"train/loss": level(), "learning_rate": 3e-4 * (1.0 - 0.95 * T)})
    assert findings("lr_schedule", run) == []


def test_a_log_that_begins_in_the_middle_says_nothing_of_the_warm_up():
    run = from_scratch(3e-4)
    late = {n: replace(s, step=s.step + 50_000) for n, s in run.series.items()}
    assert findings("lr_schedule", replace(run, series=late)) == []


def test_only_the_first_of_several_groups_is_judged():
    x = cosine()
    x[200:] *= 4.0
    run = run_of({"lr-AdamW/pg2": cosine(), "lr-AdamW/pg3": x})
    assert findings("lr_schedule", run) == []


def test_a_run_without_enough_points_is_skipped():
    assert judged("lr_schedule", run_of({"train/loss": falling()})) == Skipped("needs learning_rate")
    assert judged("lr_schedule", run_of({"learning_rate": np.ones(9)})) == Skipped(
        "needs 10 points of learning_rate, has 9"
    )
    assert judged("lr_schedule", run_of({"learning_rate": np.zeros(50)})) == Skipped("needs a learning rate above 0")


def test_known_false_positive_a_rate_that_is_raised_by_hand():
    x = np.full(ROWS, 1e-4)
    x[200:] = 3e-4
    (found,) = rates(x)
    assert (found.title, found.start_step) == ("Learning rate jumps", at(199))
