from __future__ import annotations

import numpy as np
import pytest

from .smoke_runs import STEPS, found, ones, single, smoke_run

ID = "step_accounting"


def test_steps_without_a_backward_are_found():
    kept = np.where(ones(59, 70) > 0, 0.7, np.linspace(1.0, 0.9, STEPS))  # the gradient of step 59 stays
    one = single(ID, smoke_run({"smoke/backward_calls": 1.0 - ones(60, 70), "train/grad_norm": kept}))
    assert (one.start_step, one.end_step, one.evidence["steps"]) == (60, 69, 10)


def test_an_accumulation_that_keeps_changing_is_found():
    micro = np.array([4.0, 3.0, 2.0, 4.0, 1.0] * 30)
    assert single(ID, smoke_run({"micro_batches": micro})).title == "Uneven accumulation"


def test_a_batch_that_grows_twice_is_normal():
    micro = np.repeat([1.0, 2.0, 4.0], STEPS // 3)
    assert found(ID, smoke_run({"micro_batches": micro})) == []


def test_a_short_last_window_of_each_epoch_is_normal():
    micro = np.where(np.arange(STEPS) % 5 == 4, 2.0, 4.0)
    assert found(ID, smoke_run({"micro_batches": micro})) == []


def test_what_an_epoch_leaves_over_and_adds_to_the_next_is_found():
    micro = np.where(np.arange(STEPS) % 6 == 0, 3.0, 2.0)
    micro[0] = 2.0
    one = single(ID, smoke_run({"micro_batches": micro}, loaders=[{"batches": 13, "training": True}]))
    assert (one.start_step, one.evidence["usual"], one.evidence["left_over"]) == (6, 2, 1)
    assert one.title == "Micro-batches left over from the epoch before"


@pytest.mark.parametrize("batches", [12, 14, 19])
def test_a_larger_step_that_the_length_of_the_loader_does_not_explain_is_no_fault(batches):
    micro = np.where(np.arange(STEPS) % 6 == 5, 3.0, 2.0)
    assert found(ID, smoke_run({"micro_batches": micro}, loaders=[{"batches": batches, "training": True}])) == []


def test_a_penalty_with_a_backward_of_its_own_now_and_then_is_no_fault():
    micro = np.where(np.arange(STEPS) % 16 == 15, 2.0, 1.0)
    assert found(ID, smoke_run({"micro_batches": micro}, loaders=[{"batches": 13, "training": True}])) == []


def test_gradients_that_came_without_a_backward_are_no_fault():
    other = np.linspace(1.0, 0.9, STEPS)
    calls = np.zeros(STEPS)
    assert found(ID, smoke_run({"smoke/backward_calls": calls, "train/grad_norm": other})) == []


def test_steps_without_any_gradient_are_found():
    none = {"smoke/backward_calls": np.zeros(STEPS), "train/grad_norm": np.zeros(STEPS)}
    assert found(ID, smoke_run(none))[0].title == "Steps without a backward"
