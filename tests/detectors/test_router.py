from __future__ import annotations

import numpy as np

from .smoke_runs import STEPS, found, ones, single, smoke_run

ID = "router"


def test_a_router_without_a_gradient_is_found():
    assert single(ID, smoke_run({"smoke/router_gradient": np.zeros(STEPS)})).title == "Router without gradient"


def test_a_load_that_stays_concentrated_is_found():
    run = smoke_run({"smoke/router_load_entropy": np.full(STEPS, 0.3)})
    assert single(ID, run).title == "Experts unevenly used"


def test_concentration_in_the_beginning_is_normal():
    assert found(ID, smoke_run({"smoke/router_load_entropy": 0.95 - ones(0, 60, 0.6)})) == []


def counted(counted: np.ndarray, evaluated: np.ndarray | float = 0.0, drops: float = 0.0):
    """Routers that chose 64 experts a step, and what their counters say."""
    return smoke_run(
        {
            "smoke/experts_counted": counted,
            "smoke/experts_chosen": np.full(STEPS, 64.0),
            "smoke/experts_chosen_in_evaluation": np.broadcast_to(evaluated, STEPS),
            "smoke/experts_may_drop": np.full(STEPS, drops),
        }
    )


def test_counters_that_add_up_are_right():
    assert found(ID, counted(np.full(STEPS, 64.0))) == []


def test_tokens_that_are_counted_twice_are_found():
    one = single(ID, counted(np.full(STEPS, 128.0)))
    assert "2 times as many as were chosen, at 150 of 150 steps" in one.message


def test_tokens_of_evaluation_in_the_counters_are_found():
    evaluation = ones(20, 21, 32.0)
    one = single(ID, counted(64.0 + evaluation, evaluation))
    assert "those of evaluation among them, at 1 of 150 steps" in one.message


def test_a_declared_capacity_may_drop_tokens_but_not_invent_them():
    assert found(ID, counted(np.full(STEPS, 60.0), drops=1.0)) == []
    assert found(ID, counted(np.full(STEPS, 60.0)))
    assert found(ID, counted(np.full(STEPS, 70.0), drops=1.0))


def test_moving_averages_are_no_counts():
    assert found(ID, counted(np.full(STEPS, 12.7))) == []
