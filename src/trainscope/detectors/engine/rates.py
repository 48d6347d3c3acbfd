"""Leaps of a learning rate, and which of them belong to a cyclic schedule."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trainscope.core.run import Run, Series

FloatArray = NDArray[np.float64]

MIN_FLAT = 5
"""Points of one rate before a leap that make it no warm-up."""
LEAP = 1.5
"""Smallest ratio upwards, from one logged point to the next, that counts as a leap."""


def warm_up_end(value: FloatArray) -> int:
    """Return the index of the last point of the first rise, 0 if the schedule does not start with one."""
    falls = np.flatnonzero(np.diff(value) < 0)
    if not len(falls) or value[0] >= 0.9 * value[: falls[0] + 1].max():
        return 0
    return 0 if _is_bump(value, int(falls[0])) else int(falls[0])


def _is_bump(value: FloatArray, last: int) -> bool:
    """Tell whether what ends at `last` is a flat rate that leapt, stayed for less long, and came back."""
    flat = int(np.argmax(value[: last + 1] != value[0]))
    came_back = abs(value[last + 1] - value[0]) <= 0.1 * value[0]
    return bool(flat >= MIN_FLAT and last + 1 - flat < flat and came_back)


def _is_leap(value: FloatArray, step: FloatArray, i: int) -> bool:
    """Tell whether the rise after point `i` stands alone, not as one leg of a steady ramp."""
    slope = (value[i + 1] - value[i]) / (step[i + 1] - step[i])
    for a, b in ((i - 1, i), (i + 1, i + 2)):
        if a >= 0 and b < len(value) and (value[b] - value[a]) / (step[b] - step[a]) >= 0.5 * slope:
            return False
    return True


def leaps(rate: Series, ratio: float) -> list[int]:
    """Return the points after which the rate leaps up, the warm-up and steady ramps left out."""
    value, step = rate.value, rate.step.astype(np.float64)
    floor = 1e-3 * float(value.max())
    warm = warm_up_end(value)
    steep = warm + np.flatnonzero(value[warm + 1 :] >= ratio * np.maximum(value[warm:-1], floor))
    return [int(i) for i in steep[:1000] if _is_leap(value, step, int(i))]


def are_deliberate(rate: Series, up: list[int]) -> bool:
    """Tell whether jumps up are the restarts of a cyclic schedule."""
    if not up:
        return False
    value = rate.value
    first_peak = float(value[: up[0] + 1].max())
    if any(value[i] > 0.15 * first_peak for i in up):
        return False
    cycle = value[: up[-1] + 1]
    fell = (cycle[1:] < 0.5 * cycle[:-1]) & (cycle[:-1] > 0.05 * first_peak)
    if fell.any():
        return False
    peaks = [float(value[i + 1 : i + 3].max()) for i in up]
    if any(p > 1.1 * first_peak for p in peaks):
        return False
    start = int(np.argmax(value[: up[0] + 1]))
    at = np.array([rate.step[start], *(rate.step[i + 1] for i in up)], dtype=np.float64)
    gaps = np.diff(at)
    even = gaps.max() <= 1.25 * gaps.min()
    growing = len(gaps) >= 2 and bool((np.diff(gaps) > 0).all())
    complete = float(rate.step[-1] - at[-1]) >= 0.5 * gaps.min()
    return bool((even or growing) and (len(up) >= 2 or complete))


@lru_cache(maxsize=16)
def _planned(rate: Series) -> tuple[int, ...]:
    rate = rate.finite()
    if len(rate) < 10 or not (rate.value > 0).any():
        return ()
    up = leaps(rate, LEAP)
    return tuple(int(rate.step[i + 1]) for i in up) if are_deliberate(rate, up) else ()


def after_planned_restart(run: Run, step: int) -> bool:
    """Tell whether a deliberate restart of the learning rate lies within 3 % of the run before `step`."""
    rate = run.get("learning_rate")
    if rate is None:
        return False
    near = 0.03 * ((run.last_step or 0) - (run.first_step or 0))
    return any(-0.2 * near <= step - again <= near for again in _planned(rate))
