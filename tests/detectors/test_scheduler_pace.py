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
