"""Wide bumps: hidden in the noise of single points, plain in the medians of blocks.

A loss that stands up for some per cent of a long run is its own noise to a test of points: the noise is measured on
200 of them, and all of those are in the bump. In medians of half a per cent of the run each, it is a jump of a few.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trainscope.core.robust import block_medians
from trainscope.detectors.engine.events import Excursion, Limits, Shape
from trainscope.detectors.engine.jumps import jumps

FloatArray = NDArray[np.float64]

BLOCKS = 200
"""Blocks that a run is cut into: as many points as a jump is judged by."""
LEAST_SIZE = 5
"""Points of a block; a shorter run is judged point by point, well enough."""
LEAST_BLOCKS = 3
"""Of a bump; what is shorter is an outlier of a block."""
RISE = 0.3
"""Least rise of a bump, as a share of the level: wide and low ones are wander."""


def humps(value: FloatArray, limits: Limits) -> list[Excursion]:
    """Return the bumps of a series of finite values that its block medians show and that came back.

    Parameters
    ----------
    value : (n,) float64 array
    limits : Limits
        Its `false_alarms` holds for the medians as for points.
    """
    size = len(value) // BLOCKS
    if size < LEAST_SIZE:
        return []
    found = []
    for event in jumps(block_medians(value, size), replace(limits, min_rise=max(limits.min_rise, RISE))):
        start, stop = event.start * size, min(len(value), (event.end + 1) * size)
        if event.shape is not Shape.SPIKE or event.end - event.start + 1 < LEAST_BLOCKS or stop == len(value):
            continue
        peak = start + int(np.argmax(value[start:stop]))
        found.append(replace(event, start=start, peak=peak, end=stop - 1, top=float(value[peak])))
    return found
