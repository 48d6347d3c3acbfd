"""A step that costs more processor time or memory, and what excuses it."""

from __future__ import annotations

import numpy as np
import pytest
from smoke_runs import STEPS, smoke_run

from .runs import only, said, verdicts

FLAT = np.ones(STEPS)


def timed(seconds: float, pace: float | None = 2e-4, **facts: object):
    series = {"train/cpu_step_time": seconds * FLAT, "smoke/pace": None if pace is None else pace * FLAT}
    return smoke_run(series, **facts)


@pytest.mark.parametrize(
    ("pace", "base_pace", "found"),
    [(2e-4, 2e-4, True), (3e-4, 2e-4, False), (2e-4, 3e-4, True), (3e-4, None, True), (None, 2e-4, True)],
)
def test_a_processor_that_is_slower_for_everything_excuses_a_slow_step(pace, base_pace, found):
    """Unchanged code beside a busy neighbour took 1.35 times its CPU time."""
    assert ("cost_change" in said(timed(0.029, pace), timed(0.02, base_pace))) is found
    assert "cost_change" in said(timed(0.06, pace), timed(0.02, base_pace))


def test_checkpointed_activations_may_cost_a_second_forward():
    assert "cost_change" not in said(timed(0.034, checkpointed=True), timed(0.02))
    assert "cost_change" in said(timed(0.034, checkpointed=True), timed(0.02, checkpointed=True))
    assert "cost_change" in said(timed(0.05, checkpointed=True), timed(0.02))


def test_a_step_that_costs_more_processor_time_is_found():
    assert only(smoke_run({"train/cpu_step_time": 0.04 * FLAT}), smoke_run(), by="cost_change")


def test_a_machine_that_was_busier_for_the_run_gets_more_room():
    def made(cpu: float, wall: float):
        return smoke_run({"train/cpu_step_time": cpu * FLAT, "train/step_time": wall * FLAT})

    assert said(made(0.028, 0.06), made(0.02, 0.02)) == {}
    assert "cost_change" in said(made(0.028, 0.028), made(0.02, 0.02))
    assert "cost_change" in said(made(0.04, 0.09), made(0.02, 0.02))


def test_steps_of_a_fraction_of_a_millisecond_are_not_judged():
    assert (
        said(smoke_run({"train/cpu_step_time": 0.0014 * FLAT}), smoke_run({"train/cpu_step_time": 0.0007 * FLAT})) == {}
    )


def test_a_few_slow_steps_and_another_processor_are_not_judged():
    spikes = 0.02 * FLAT + 0.2 * (np.arange(STEPS) % 4 == 0)
    assert said(smoke_run({"train/cpu_step_time": spikes}), smoke_run()) == {}
    other = smoke_run({"train/cpu_step_time": 0.06 * FLAT}, env__processor="b")
    assert said(other, smoke_run()) == {}


def with_workers(count: int, seconds: float, own: float = 0.02):
    series = {"train/worker_cpu_time": seconds * FLAT, "train/cpu_step_time": own * FLAT}
    return smoke_run(series, loaders=[{"workers": count, "batches": 40}])


def test_workers_that_cost_more_are_found():
    one = only(with_workers(2, 0.03), with_workers(2, 0.005), by="cost_change")
    assert "takes 50 ms of CPU time (its loaders' workers included), the baseline's 25 ms" in one.message


def test_another_number_of_workers_moves_work_and_is_no_finding():
    # A queue between two processes costs the one that trains more than reading a small sample itself.
    moved = with_workers(2, 0.03, own=0.05)
    assert said(moved, smoke_run(loaders=[{"workers": 0, "batches": 40}])) == {}
    assert verdicts(moved, smoke_run())["train/cpu_step_time"] == "not judged: 2 workers of loaders, 0 in the baseline"


def test_a_few_milliseconds_are_what_surrounds_a_step():
    def made(cpu: float):
        return smoke_run({"train/cpu_step_time": cpu * FLAT})

    assert said(made(0.007), made(0.0035)) == {}
    assert "cost_change" in said(made(0.009), made(0.0035))


def test_wall_time_alone_never_counts():
    assert said(smoke_run({"train/step_time": 9.0 * FLAT}), smoke_run({"train/step_time": FLAT})) == {}


def test_memory_that_grows_where_the_baselines_did_not_is_found():
    run = smoke_run({"memory/cpu_mb": 300.0 + 0.5 * np.arange(STEPS)})
    assert only(run, smoke_run(), by="cost_change").title == "Memory grows"


def test_a_higher_peak_that_does_not_grow_is_found_and_a_little_more_is_not():
    assert only(smoke_run({"memory/peak_mb": 400.0 * FLAT}), smoke_run(), by="cost_change").title == "More memory"
    assert said(smoke_run({"memory/peak_mb": 330.0 * FLAT}), smoke_run()) == {}
