"""Change-point detection by cumulative sums, arrays to arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def cusum_alarms(z: FloatArray, slack: float, threshold: float) -> list[tuple[int, int]]:
    """Return (onset, alarm) indices of upward shifts by a one-sided CUSUM that restarts after each alarm.

    ``S = max(0, S + z - slack)``; alarm when ``S >= threshold``; the onset is the point after the last
    zero of S before the alarm (E. S. Page, Biometrika 41, 1954).

    Parameters
    ----------
    z : (n,) float64 array
        Finite standardised residuals.
    slack : float
        Drift that is tolerated, in the unit of `z`.
    threshold : float
        Decision limit, in the unit of `z`.
    """
    alarms: list[tuple[int, int]] = []
    begin = 0
    while begin < len(z):
        path = np.cumsum(z[begin:] - slack)
        floor = np.minimum(np.minimum.accumulate(path), 0.0)
        over = np.flatnonzero(path - floor >= threshold)
        if not len(over):
            break
        alarm = int(over[0])
        zeros = np.flatnonzero(path[: alarm + 1] <= floor[: alarm + 1])
        onset = int(zeros[-1]) + 1 if len(zeros) else 0
        alarms.append((begin + onset, begin + alarm))
        begin += alarm + 1
        if len(alarms) >= 50:
            break
    return alarms
