from __future__ import annotations

from math import log

from .smoke_runs import found, single, skipped, smoke_run

ID = "initial_loss"


def test_a_first_loss_far_above_chance_is_found():
    one = single(ID, smoke_run(initial_cross_entropy=16.0))
    assert one.evidence["chance"] == log(30)


def test_a_first_loss_near_chance_is_right():
    assert found(ID, smoke_run(initial_cross_entropy=log(30) + 0.5)) == []


def test_a_pretrained_model_may_start_low():
    assert found(ID, smoke_run(initial_cross_entropy=0.4)) == []


def test_other_objectives_are_skipped():
    assert "cross entropy" in skipped(ID, smoke_run(vocabulary=None))
