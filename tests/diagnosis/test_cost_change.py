"""What excuses a step that costs more processor time."""

from __future__ import annotations

import numpy as np
import pytest
from smoke_runs import STEPS, smoke_run

from .runs import said

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
