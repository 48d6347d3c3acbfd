from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from .smoke_runs import STEPS, found, single, smoke_run

ID = "optimizer_state"


def test_a_step_counter_that_falls_is_found_at_each_fall():
    one = single(ID, smoke_run({"smoke/optimizer_state_step": np.arange(STEPS) % 50 + 1.0}))
    assert (one.start_step, one.evidence["times"]) == (50, 2)


def test_a_new_optimizer_whose_momentum_starts_again_is_found():
    created = 1.0 + np.arange(STEPS) // 50
    norm = np.minimum(3.0, 0.3 + np.arange(STEPS) % 50)
    run = smoke_run({"smoke/optimizer_state_step": None, "smoke/optimizers_created": created, "optimizer/m_norm": norm})
    assert single(ID, run).start_step == 50


def test_a_new_optimizer_object_that_takes_over_the_state_is_no_finding():
    created = 1.0 + np.arange(STEPS) // 100
    assert found(ID, smoke_run({"smoke/optimizers_created": created})) == []


def test_moments_that_fall_with_the_gradient_are_no_finding():
    norm = np.where(np.arange(STEPS) < 70, 3.0, 1.0)
    assert found(ID, smoke_run({"optimizer/m_norm": norm})) == []


def recorded(norm: np.ndarray, **other: object):
    """Return a run of the Python recorder: Adam's moments, but no counter."""
    run = smoke_run({"optimizer/v_norm": norm, **other})
    return replace(run, config={k: v for k, v in run.config.items() if not k.startswith("smoke.")})


def test_a_second_moment_that_falls_faster_than_it_can_decay_was_lost():
    norm = np.where(np.arange(STEPS) < 80, 0.01, 0.0001)
    assert single(ID, recorded(norm)).start_step == 80


@pytest.mark.parametrize(("every", "seen"), [(6, True), (7, False)])
def test_second_moments_are_compared_over_as_many_steps_as_lie_between_two_that_are_recorded(every, seen):
    run = recorded(np.where(np.arange(STEPS) < 79, 0.01, 0.0001))
    norm = run.series["optimizer/v_norm"]
    kept = replace(norm, step=norm.step[::every], value=norm.value[::every])
    assert bool(found(ID, replace(run, series={**run.series, "optimizer/v_norm": kept}))) == seen


def test_a_second_moment_that_decays_after_a_spike_is_no_loss():
    assert found(ID, recorded(0.01 + 5.0 * 0.9 ** np.arange(STEPS))) == []
