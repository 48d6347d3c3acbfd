"""A learning rate that climbs step by step is seen as a whole; warm-ups and cycles are not."""

from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.run import Series
from trainscope.diagnosis.climb import climb

N = 200


def rate(values: np.ndarray) -> Series:
    return Series("learning_rate", np.arange(len(values)), values)


def test_a_rate_that_is_multiplied_at_every_step_climbs_from_the_first_of_them():
    values = np.full(N, 1e-3)
    values[150:] = 1e-3 * 1.05 ** np.arange(1, 51)
    found = climb(rate(values), 160, 199)
    assert found is not None
    assert (found.step, found.end_step) == (150, 199)
    assert found.before == pytest.approx(1e-3)
    assert found.top == pytest.approx(values[-1])
    assert climb(rate(values), 100, 149) is None
    assert climb(rate(1e6 * values), 160, 199) is not None


def test_a_schedule_that_decays_first_and_then_climbs_above_its_peak_is_seen():
    values = np.concatenate([np.linspace(0, 1, 40), np.linspace(1, 0.5, 80), 0.5 * 1.03 ** np.arange(1, 81)])
    found = climb(rate(values), 150, 199)
    assert found is not None
    assert found.step == 120


@pytest.mark.parametrize(
    "values",
    [
        np.linspace(1e-5, 1e-3, N),
        np.concatenate([np.full(10, 1e-6), np.linspace(1e-6, 1e-3, N - 10)]),
        0.5 * (1 - np.cos(np.arange(N) / 15)),
        np.concatenate([np.linspace(0, 1, 20), 0.5 * (1 + np.cos(np.linspace(0, 3.1, N - 20)))]),
        np.full(N, 1e-3),
        np.full(10, 1e-3),
        np.concatenate([np.full(100, 1e-3), 1e-3 * np.linspace(1, 1.8, 100)]),
        np.zeros(N),
        np.empty(0),
    ],
    ids=["warm-up", "late warm-up", "cycles", "cosine", "constant", "short", "less than twice", "zero", "empty"],
)
def test_ordinary_schedules_do_not_climb(values):
    assert climb(rate(values), 0, N) is None
