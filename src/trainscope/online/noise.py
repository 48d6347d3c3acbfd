"""The noise of a series that comes one value at a time, against the largest that it has shown before."""

from __future__ import annotations

from collections import deque

import numpy as np

from trainscope.core.noise import FALLEN, LEAST, LIMITS, MEDIAN_CHANGE, START

EVERY = 5
"""Values between two looks; a look costs some 30 us."""
NEWEST = 25
"""Values that say where the series is now."""


class GrownNoise:
    """Median change from value to value in the newest windows, and the largest in all windows before them.

    The same rule as that of a log (``detectors/engine/noise.py``), but for how often it looks.
    """

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=max(window for window, _ in LIMITS) + 1)
        self._seen = 0
        self._recent: list[deque[tuple[float, float]]] = [deque() for _ in LIMITS]
        self._before = [(0.0, 0.0)] * len(LIMITS)

    def add(self, value: float, level: float) -> float | None:
        """Take one finite value; return how many times as large as ever the noise is, if that is an anomaly.

        Parameters
        ----------
        level : float
            Where the series was of late, in its own unit.
        """
        self._values.append(value)
        self._seen += 1
        return self._look(level) if self._seen % EVERY == 0 else None

    def _look(self, level: float) -> float | None:
        values = np.fromiter(self._values, dtype=float, count=len(self._values))
        changes = np.abs(values[1:] - values[:-1])
        there = _middle(values[-NEWEST:])
        size, learns = max(abs(there), 1e-300), there < FALLEN * level
        found: float | None = None
        for k, (window, limit) in enumerate(LIMITS):
            if len(changes) < window:
                break
            noise = _middle(changes[-window:]) / MEDIAN_CHANGE
            before, share = self._before[k]
            large = noise >= max(LEAST, limit * share) * size and noise >= limit * before > 0.0
            if found is None and large and not learns and self._seen - window > START:
                found = noise / before
            self._recent[k].append((noise, noise / size))
            if len(self._recent[k]) > window // EVERY + 1:
                self._before[k] = _larger([self._before[k], self._recent[k].popleft()])
        if found is not None:  # what has been told once, the run has shown before
            self._before = [_larger([b, *r]) for b, r in zip(self._before, self._recent, strict=True)]
        return found


def _larger(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the largest noise, and the largest as a share of its level."""
    return max(noise for noise, _ in pairs), max(share for _, share in pairs)


def _middle(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    """Return the upper median, which costs a fifth of ``numpy.median``."""
    return float(np.partition(values, len(values) // 2)[len(values) // 2])
