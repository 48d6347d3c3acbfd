"""Change-point detection by cumulative sums: one recursion, fed value by value or with a whole series.

The live detector (``online/changepoint.py``) feeds :class:`Cusum`; detectors that have the whole series call
:func:`cusum_alarms`, which is the same recursion summed at once. ``tests/core/test_change.py`` holds the two
together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

SLACK = 0.5
"""Sigmas a value may lie above the level without adding up: half of the smallest shift worth finding."""
CLIP = 4.0
"""Sigmas one value may add: a single outlier cannot make a shift."""
MOST_ALARMS = 50
"""Alarms that :func:`cusum_alarms` returns at most."""


class Cusum:
    """One-sided cumulative sum of standardised residuals (E. S. Page, Biometrika 41, 1954).

    Attributes
    ----------
    total : float
        The sum so far; an alarm is for the caller to call, at the limit of its choice.
    """

    def __init__(self, slack: float = SLACK) -> None:
        self._slack = slack
        self.total = 0.0

    def add(self, z: float) -> float:
        """Take one finite residual, ``S = max(0, S + z - slack)``; return the sum."""
        self.total = max(0.0, self.total + z - self._slack)
        return self.total

    def restart(self) -> None:
        """Begin again at 0, as after an alarm."""
        self.total = 0.0


def inflation(phi: float) -> float:
    """Return how many times higher a limit must be for AR(1) noise than for noise without memory.

    Parameters
    ----------
    phi : float
        Lag-1 autocorrelation, below 1 (Johnson & Bagshaw, Technometrics 16, 1974).
    """
    return (1.0 + phi) / (1.0 - phi)


def cusum_alarms(z: FloatArray, slack: float, threshold: float) -> list[tuple[int, int]]:
    """Return (onset, alarm) indices of upward shifts by a :class:`Cusum` that restarts after each alarm.

    Alarm when the sum reaches `threshold`; the onset is the point after the last zero of the sum before it.

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
        if len(alarms) >= MOST_ALARMS:
            break
    return alarms
