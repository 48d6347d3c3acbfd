from __future__ import annotations

from .smoke_runs import evaluated, found, single, skipped, smoke_run

ID = "train_eval_gap"


def test_an_evaluation_that_rises_while_training_falls_is_found():
    one = single(ID, smoke_run({"smoke/eval_cross_entropy": evaluated(2.0, 2.6, 4.0)}))
    assert one.evidence["best"] == 2.0


def test_an_evaluation_that_falls_with_training_is_right():
    assert found(ID, smoke_run({"smoke/eval_cross_entropy": evaluated(2.2, 1.2, 0.7)})) == []


def test_a_gap_that_does_not_grow_is_no_finding():
    assert found(ID, smoke_run({"smoke/eval_cross_entropy": evaluated(2.2, 2.15, 2.2)})) == []


def test_one_evaluation_is_not_enough():
    assert "two evaluations" in skipped(ID, smoke_run({"smoke/eval_cross_entropy": evaluated(9.0)}))
