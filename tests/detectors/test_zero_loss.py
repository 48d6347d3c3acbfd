from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.detectors.base import Skipped

from .runs import at, falling, findings, judged, only, run_of


def zeroed(*spans: tuple[int, int]) -> np.ndarray:
    x = falling()
    for begin, end in spans:
        x[begin:end] = 0.0
    return x


def test_a_collapse_to_the_end_is_an_error_at_its_first_zero():
    x = zeroed((150, 400))
    found = only("zero_loss", run_of({"train/loss": x}))
    assert found.severity is Severity.ERROR
    assert (found.start_step, found.peak_step, found.end_step) == (at(150), at(150), at(399))
    assert found.evidence == {"points": 250, "before": x[149]}


@pytest.mark.parametrize(("length", "expected"), [(1, 0), (2, 1), (3, 1)])
def test_two_points_in_a_row_count_and_one_does_not(length, expected):
    assert len(findings("zero_loss", run_of({"train/loss": zeroed((150, 150 + length))}))) == expected


def test_how_many_points_count_is_a_parameter():
    run = run_of({"train/loss": zeroed((150, 153))})
    assert findings("zero_loss", run, points=4) == []
    assert len(findings("zero_loss", run, points=3)) == 1


def test_several_stretches_are_one_finding_from_the_first_to_the_last():
    found = only("zero_loss", run_of({"train/loss": zeroed((100, 110), (300, 320))}))
    assert (found.start_step, found.end_step) == (at(100), at(319))
    assert found.evidence["points"] == 30


def test_a_loss_that_was_0_from_the_first_point_on_is_left_out():
    assert findings("zero_loss", run_of({"train/loss": zeroed((0, 30), (200, 300))})) == []


def test_a_small_loss_is_not_0():
    x = falling() * 1e-9
    assert findings("zero_loss", run_of({"train/loss": x})) == []


def test_a_loss_that_converged_to_nearly_0_is_not_0():
    x = falling()
    x[200:] = 5e-13
    assert findings("zero_loss", run_of({"train/loss": x})) == []


def test_only_the_points_of_the_stretches_are_counted():
    one = only("zero_loss", run_of({"train/loss": zeroed((50, 51), (200, 260))}))
    assert f"at 60 points from step {at(200)} to {at(259)}" in one.message
    assert one.evidence["points"] == 60


def test_reinforcement_learning_where_0_is_by_construction_is_not_judged():
    run = run_of({"train/loss": zeroed((100, 300)), "train/reward": falling()})
    assert isinstance(judged("zero_loss", run), Skipped)


def test_a_player_of_a_game_may_be_at_0():
    run = run_of({"D_A": zeroed((150, 400)), "G_A": falling()})
    assert isinstance(judged("zero_loss", run), Skipped)


def test_known_false_positive_a_hinge_loss_that_every_sample_meets():
    x = np.maximum(0.0, 1.0 - np.linspace(0.0, 1.2, 400))
    found = only("zero_loss", run_of({"train/loss": x}))
    assert found.severity is Severity.ERROR
