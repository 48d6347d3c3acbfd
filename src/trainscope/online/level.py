"""The recent level and noise of a series, robust to outliers and to a falling trend."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

MAD_TO_SIGMA = 1.4826
"""Makes the median absolute deviation estimate sigma for Gaussian noise."""
RELATIVE_FLOOR = 1e-4
"""Noise is taken to be at least this part of the level: a constant loss must not make rounding an event."""
START_FLOOR = 1e-6
"""And this part of the level that the run began with: near 0 a loss is what float32 leaves of larger numbers, and
its wiggles are nobody's concern. Of 205 alarms of three trainings there 18 are left; all ten explosions are among
them."""
REFIT_EVERY = 5
"""Values between two fits; 200 values move little in five steps, and a fit costs 40 us."""
SETTLED = 100
"""Fits that `spread` and `lean` are averaged over: of one window they are known to 15 %, and a fault would be in it."""


class Level:
    """Median, noise and lag-1 autocorrelation of the last `window` values.

    The level has no trend, so that a falling loss reads as below it; the noise is measured after a straight
    line was taken out, so that the same fall does not read as noise.

    Attributes
    ----------
    median, sigma : float
        In the unit of the values.
    phi : float
        Lag-1 autocorrelation of what remains, within [0, 0.6].
    noise : float
        The same from the changes between neighbours, to which the bend of an early loss curve is nothing.
    memory : float
        Lag-1 autocorrelation by the changes between neighbours, within [0, 0.6].
    spread, lean : float
        Variance and mean of the scores, clipped at 4, on average of the last fits. Of Gaussian noise they are 1 and
        0; a heavy tail has more of the one, a longer upper tail of the other.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        # Twice as long, so that the last `window` values are always one slice.
        self._values: NDArray[np.float64] = np.empty(2 * window)
        self._end = 0
        self._since_fit = REFIT_EVERY
        self.count = 0
        self._time = np.arange(window) - (window - 1) / 2
        self.median, self.sigma, self.phi, self.noise, self.memory = 0.0, 1.0, 0.0, 1.0, 0.0
        self.spread, self.lean, self._fits = 1.0, 0.0, 0
        self._start: float | None = None

    def add(self, value: float) -> None:
        """Take one finite value."""
        if self._end == len(self._values):
            self._values[: self._window] = self._values[self._window :]
            self._end = self._window
        self._values[self._end] = value
        self._end += 1
        self.count = min(self.count + 1, self._window)
        self._since_fit += 1

    def clear(self) -> None:
        """Forget all values, but not how large the first ones were."""
        self._end, self.count, self._since_fit = 0, 0, REFIT_EVERY

    def fit(self) -> None:
        """Bring median, sigma and phi up to date, if enough values came since the last time."""
        if self._since_fit < REFIT_EVERY or self.count < 3:
            return
        self._since_fit = 0
        n = self.count
        values = self._values[self._end - n : self._end]
        self.median = _median(values)
        if self._start is None:
            self._start = START_FLOOR * abs(self.median)
        time = self._time if n == self._window else np.arange(n) - (n - 1) / 2
        slope = float(time @ values) / (n * (n * n - 1) / 12)
        rest = values - slope * time
        rest -= _median(rest)
        # A standard deviation is steadier but counts the bend of an early loss curve as noise: with the
        # larger of both, four of seven real faults of learning rate and stale moments were missed.
        mad = MAD_TO_SIGMA * _median(np.abs(rest))
        self.sigma = max(mad, RELATIVE_FLOOR * abs(self.median), self._start, 1e-12)
        # Outliers are clipped: one of them would hide the correlation of all others.
        bounded = np.minimum(np.maximum(rest, -4 * self.sigma), 4 * self.sigma)
        power = float(bounded @ bounded)
        phi = float(bounded[1:] @ bounded[:-1]) / power if power > 0 else 0.0
        self.phi = min(max(phi, 0.0), 0.6)
        self._settle(power / (n * self.sigma**2), float(bounded.sum()) / (n * self.sigma))
        moves = values[1:] - values[:-1]
        moved = MAD_TO_SIGMA * _median(np.abs(moves)) / math.sqrt(2.0)
        self.noise = max(moved, RELATIVE_FLOOR * abs(self.median), self._start, 1e-12)
        # Of noise with autocorrelation phi, neighbouring changes have one of (phi - 1) / 2.
        bounded = np.minimum(np.maximum(moves, -4 * self.noise), 4 * self.noise)
        power = float(bounded @ bounded)
        memory = 1.0 + 2.0 * float(bounded[1:] @ bounded[:-1]) / power if power > 0 else 0.0
        self.memory = min(max(memory, 0.0), 0.6)

    def _settle(self, power: float, lean: float) -> None:
        self._fits = min(self._fits + 1, SETTLED)
        self.spread += (power - lean**2 - self.spread) / self._fits
        self.lean += (lean - self.lean) / self._fits

    def changes(self) -> NDArray[np.float64]:
        """Return the changes from each value to the next, in units of `noise`."""
        return np.diff(self._values[self._end - self.count : self._end]) / (math.sqrt(2.0) * self.noise)

    def change(self, value: float) -> float:
        """Return the change from the newest value to `value`, in the same unit."""
        return (value - float(self._values[self._end - 1])) / (math.sqrt(2.0) * self.noise)

    def score(self, value: float) -> float:
        """Return how many sigmas `value` lies above the median."""
        z = (value - self.median) / self.sigma
        return z if math.isfinite(z) else math.copysign(math.inf, z)


def _median(values: NDArray[np.float64]) -> float:
    """Return what ``numpy.median`` does, in a third of its time for a few hundred values."""
    ordered = np.sort(values)
    n = len(ordered)
    return float(ordered[n // 2] + ordered[(n - 1) // 2]) / 2
