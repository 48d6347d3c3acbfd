"""Which signs are one incident, and in which order they stand."""

from __future__ import annotations

import numpy as np

from trainscope.core.run import Run, Series
from trainscope.diagnosis.incidents import REACH, incidents, ordered, reach_of
from trainscope.diagnosis.signs import Sign, Stage


def sign(step: int, stage: Stage, end: int | None = None, score: float = 9.0, signal: str = "x") -> Sign:
    return Sign(step, stage, signal, "rose", end_step=end, score=score)


def test_signs_within_20_steps_are_one_incident_and_later_ones_another():
    near = [sign(180, Stage.LOSS), sign(199, Stage.EVAL), sign(160, Stage.GRADIENT)]
    assert [len(group) for group in incidents([*near, sign(240, Stage.LOSS)], REACH)] == [3, 1]


def test_at_one_step_the_order_is_that_of_a_training_step():
    signs = [sign(180, stage) for stage in reversed(Stage)]
    assert [s.stage for s in ordered(signs)] == list(Stage)


def test_an_earlier_step_comes_first_whatever_its_stage():
    assert [s.step for s in ordered([sign(181, Stage.DATA), sign(180, Stage.LOSS)])] == [180, 181]


def test_what_a_lasting_cause_does_later_belongs_to_it():
    cause, effect = sign(100, Stage.SCHEDULE, end=400), sign(300, Stage.LOSS)
    assert len(incidents([cause, effect], REACH)) == 1


def test_a_cause_does_not_belong_to_an_effect_that_began_before_it():
    effect, cause = sign(100, Stage.LOSS, end=400), sign(300, Stage.SCHEDULE)
    assert len(incidents([effect, cause], REACH)) == 2


def test_the_order_of_the_input_does_not_matter():
    signs = [sign(180, Stage.LOSS), sign(180, Stage.DATA), sign(400, Stage.EVAL)]
    assert incidents(signs, REACH) == incidents(signs[::-1], REACH)


def test_a_sparse_log_is_given_three_of_its_intervals():
    step = np.arange(0, 5000, 50)
    run = Run("r", "r", "csv", {"train/loss": Series("train/loss", step, np.ones(100))})
    assert reach_of(run) == 150
    assert reach_of(Run("r", "r", "csv", {})) == REACH
