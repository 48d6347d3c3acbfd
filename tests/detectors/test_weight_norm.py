"""Weights that collapse or run away are found where it began; weights that learn are not."""

from __future__ import annotations

import numpy as np
import pytest

from .smoke_runs import STEPS, found, ones, single, skipped, smoke_run

ID, NORM = "weight_norm", "model/weight_norm"
T = np.arange(STEPS)


def test_a_decay_that_is_far_too_strong_is_found():
    finding = single(ID, smoke_run({NORM: 16.0 * np.exp(-T / 60.0)}))
    assert (finding.title, finding.start_step, finding.severity.label) == ("Weights collapse", 0, "error")


def test_weights_that_jump_are_dated_to_the_step_of_the_jump():
    finding = single(ID, smoke_run({NORM: 16.0 + ones(140, value=40.0)}))
    assert (finding.title, finding.start_step) == ("Weights run away", 140)
    assert "from 16 to 56 at step 140" in finding.message


def test_weights_that_run_away_within_the_window_are_dated_to_where_they_left_their_level():
    growth = 90.0 * np.exp(np.clip(T - 110, 0, 40) * np.log(2.5) / 40)
    finding = single(ID, smoke_run({NORM: growth + T / 200.0}))
    assert finding.title == "Weights run away"
    assert 109 <= finding.start_step <= 113


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_verdict_does_not_depend_on_the_unit(unit):
    assert single(ID, smoke_run({NORM: unit * 16.0 * np.exp(-T / 60.0)})).start_step == 0


def test_a_model_that_leaves_its_small_first_weights_is_healthy():
    assert found(ID, smoke_run({NORM: 16.0 + 20.0 * (1.0 - np.exp(-T / 20.0))})) == []


def test_usual_decay_is_healthy():
    assert found(ID, smoke_run({NORM: 16.0 * np.exp(-T / 1000.0)})) == []


@pytest.mark.parametrize("value", [0.0, 5.0])
def test_a_constant_norm_is_not_broken(value):
    assert found(ID, smoke_run({NORM: np.full(STEPS, value)})) == []


def test_norms_that_are_not_numbers_are_left_to_another_detector():
    assert found(ID, smoke_run({NORM: np.where(T < 100, 16.0, np.nan)})) == []
    assert skipped(ID, smoke_run({NORM: np.full(STEPS, np.inf)})).startswith("needs 20 points")


def test_a_run_without_the_norm_is_skipped():
    assert skipped(ID, smoke_run({NORM: None})).startswith("needs 20 points of model/weight_norm")
