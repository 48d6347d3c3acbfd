"""Few bursts in a short series: too much of it is incident for its own noise to be measured.

Where a third of a curve of 60 points is bursts, they are in its MAD and in its tail, and vouch for each other. What
still tells them from noise is the gap: every excursion above some height goes far above it, and nothing lies between.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

RATIO = 4.0
"""Of the lowest burst's height to the highest of the rest. By Rényi's representation of the log-spacings of order
statistics (1953), the k largest of independent values with a tail index of 3 are that far off once in 4 ** (3 * k)
series: in 4,096 for two bursts."""
MOST_BURSTS = 5
"""Of more, the tail of the run says whether they are its normal."""
APART = 3
"""Points below the gap that end a burst."""
LEAST = 0.6
"""Height of a burst, as a share of what a rise is measured against."""
CALM = 0.5
"""Least share of the points that must lie below the gap."""
REST = 20
"""Least number of points below the gap."""
_STEP = 2.0**0.25


def few_bursts(height: FloatArray) -> NDArray[np.bool_]:
    """Return the points of the few bursts that stand far above everything else in a series; none, if it has none.

    Parameters
    ----------
    height : (n,) float64 array
        Each point above its level, as a share of what a rise is measured against.
    """
    found = np.zeros(len(height), dtype=bool)
    if len(height) < 2 * REST:
        return found
    gap = float(height.max()) / RATIO
    while gap >= LEAST / RATIO:
        above = np.flatnonzero(height > gap)
        bursts = np.split(above, np.flatnonzero(np.diff(above) > APART) + 1)
        if len(bursts) > MOST_BURSTS or len(height) - len(above) < max(REST, CALM * len(height)):
            break
        if len(bursts) > 1 and all(height[burst].max() >= max(LEAST, RATIO * gap) for burst in bursts):
            found[above] = True
            break
        gap /= _STEP
    return found
