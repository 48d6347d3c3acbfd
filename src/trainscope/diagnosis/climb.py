"""A learning rate that climbs after its warm-up: no leap from one step to the next, and yet far above its schedule.

A scheduler with a wrong sign, or one that multiplies where it should divide, raises the rate by a few percent a step.
No single step stands out; the way as a whole does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.run import FloatArray, Series

FLAT = 24
"""Points before the climb at which the rate stood still or fell: whoever rises from the start warms up."""
FOLD = 2.0
"""Times the largest rate before it, at least: a schedule that comes back to its peak is none."""
SAME = 1e-4
"""Relative change that is the rounding of a log."""


@dataclass(frozen=True, slots=True)
class Climb:
    """One climb, both ends included."""

    step: int
    """First step with a raised rate."""
    end_step: int
    before: float
    top: float


def climb(rate: Series, first: int, last: int) -> Climb | None:
    """Return the first climb of a learning rate that goes on inside a window of steps, None where there is none.

    Parameters
    ----------
    rate : Series
        Finite.
    first, last : int
        The window, both ends included; the climb may begin before it.
    """
    value = rate.value
    if len(value) <= FLAT:
        return None
    raised = value[1:] > value[:-1] * (1 + SAME)
    held = value[1:] >= value[:-1] * (1 - SAME)
    end = 0
    for begin in np.flatnonzero(raised):
        if begin < end:
            continue
        stops = np.flatnonzero(~held[begin:])
        end = int(begin + stops[0]) if len(stops) else len(value) - 1
        if rate.step[begin + 1] > last:
            return None
        if rate.step[end] >= first and _is_climb(value, int(begin), end):
            return Climb(
                int(rate.step[begin + 1]), int(rate.step[end]), float(value[begin]), float(value[begin : end + 1].max())
            )
    return None


def _is_climb(value: FloatArray, begin: int, end: int) -> bool:
    flat = value[max(0, begin - FLAT) : begin + 1]
    stood = begin >= FLAT and bool((flat[1:] <= flat[:-1] * (1 + SAME)).all())
    most = float(value[: begin + 1].max())
    return stood and most > 0 and float(value[end]) >= FOLD * most
