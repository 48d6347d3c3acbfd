from __future__ import annotations

import numpy as np

from .smoke_runs import STEPS, found, single, skipped, smoke_run

ID = "scheduler_pace"


def test_a_scheduler_stepped_once_a_micro_batch_is_found_with_its_factor():
    run = smoke_run({"smoke/scheduler_steps": np.full(STEPS, 4.0), "micro_batches": np.full(STEPS, 4.0)})
    assert "4 times too fast" in single(ID, run).message


def test_one_scheduler_for_each_of_two_optimizers_is_right():
    run = smoke_run({"smoke/scheduler_steps": np.full(STEPS, 2.0)}, schedulers=2, optimizers=2)
    assert found(ID, run) == []


def test_accelerate_steps_once_a_process_on_purpose():
    assert found(ID, smoke_run({"smoke/scheduler_steps": np.full(STEPS, 2.0)}, env__world_size=2)) == []


def test_a_scheduler_stepped_once_an_epoch_is_right():
    steps = (np.arange(STEPS) % 30 == 29).astype(float)
    assert found(ID, smoke_run({"smoke/scheduler_steps": steps})) == []


def test_a_run_without_a_scheduler_is_skipped():
    assert "no scheduler" in skipped(ID, smoke_run({"smoke/scheduler_steps": np.zeros(STEPS)}))


def four_times(horizon: float, **facts):
    series = {"smoke/scheduler_steps": np.full(STEPS, 4.0), "micro_batches": np.full(STEPS, 4.0)}
    return smoke_run(series, scheduler0__horizon=horizon, schedulers=1, optimizers=1, **facts)


def test_a_schedule_in_micro_batches_that_is_as_long_as_declared_is_right():
    told = [{"what": "total_steps", "value": 1000, "name": "max_steps", "source": "arguments"}]
    assert found(ID, four_times(4000.0, declared=told, ended="steps")) == []
    assert "4 times too fast" in single(ID, four_times(1000.0, declared=told, ended="steps")).message


def test_a_schedule_in_micro_batches_that_ends_with_the_script_is_right():
    whole = 4.0 * STEPS
    assert found(ID, four_times(whole, declared=None, ended="script")) == []
    assert "4 times too fast" in single(ID, four_times(STEPS, declared=None, ended="script")).message
    assert "4 times too fast" in single(ID, four_times(whole, declared=None, ended="steps")).message
