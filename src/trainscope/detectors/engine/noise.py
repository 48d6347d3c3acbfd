"""From where on is a series noisier than it has ever been? Changes from point to point, against all windows before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from trainscope.core.noise import FALLEN, LIMITS, MEDIAN_CHANGE, START
from trainscope.core.robust import hop_for, quantum

FloatArray = NDArray[np.float64]

LASTING = 100
"""Points that it must last where the series goes on calmly after it: a burst is another event."""


@dataclass(frozen=True, slots=True)
class Growth:
    """One lasting rise of the noise. Indices are into the values."""

    start: int
    end: int
    """Last point, included."""
    before: float
    """Largest noise of any window before, as a standard deviation of Gaussian noise, in the unit of the values."""
    after: float
    """Median noise of the windows in it, in the same unit."""
    level: float
    """Size of the level there."""


def grown_noise(value: FloatArray, least: float) -> Growth | None:
    """Return the first stretch whose noise is larger than that of every window before by far, None if there is none.

    Windows of 25, 50 and 100 points are compared with all earlier ones of their own length, so that noise which grows
    by little and little, or which the run had before, is not reported; nor is noise that is no larger for its level.
    Longer series are thinned.

    Parameters
    ----------
    value : (n,) float64 array
        Finite values.
    least : float
        Smallest noise that counts, as a fraction of the level.
    """
    hop = hop_for(len(value))
    thin = value[::hop]
    rounding = quantum(thin)
    for window, limit in LIMITS:
        if len(thin) < START + 2 * window:
            continue
        found = _grown(thin, window, limit, least, rounding)
        if found is not None:
            start, end = found.start * hop, min(len(value) - 1, found.end * hop + hop - 1)
            return Growth(start, end, found.before, found.after, found.level)
    return None


def _grown(value: FloatArray, window: int, limit: float, least: float, rounding: float) -> Growth | None:
    # Windows are counted back from the newest point, which a log that is still being written must not wait for.
    every = max(1, window // 5)
    noise = np.median(sliding_window_view(np.abs(np.diff(value)), window)[::-1][::every][::-1], axis=1) / MEDIAN_CHANGE
    level = np.median(sliding_window_view(value[1:], window)[::-1][::every][::-1], axis=1)
    last = len(value) - 1 - every * np.arange(len(noise))[::-1]
    apart = window // every + 1
    low, high = np.percentile(value, [5.0, 95.0])
    scale = np.fmax(np.abs(level), max(0.1 * (high - low), float(np.finfo(np.float64).tiny)))
    before = np.maximum.accumulate(np.fmax(noise, rounding))[:-apart]
    share = np.maximum.accumulate(noise / scale)[:-apart]
    now, there = noise[apart:], scale[apart:]
    over = (now >= limit * before) & (now >= np.fmax(least, limit * share) * there)
    over &= level[apart:] >= FALLEN * level[:-apart]
    over &= last[apart:] - window >= START
    hits = np.flatnonzero(over)
    if not len(hits):
        return None
    first = int(hits[0])
    calm = np.flatnonzero(now[first:] < np.sqrt(limit) * before[first])
    stop = first + int(calm[0]) if len(calm) else len(now)
    start = _onset(value, int(last[apart + first]) - window, int(last[apart + first]), float(before[first]))
    end = int(last[apart + stop - 1])
    if stop < len(now) and end - start < LASTING:
        return None
    return Growth(start, end, float(before[first]), float(np.median(now[first:stop])), float(there[first]))


def _onset(value: FloatArray, low: int, high: int, before: float) -> int:
    """Return the point of a window from which on changes are larger than before; the window's first at the earliest."""
    large = np.abs(np.diff(value[low : high + 1])) > MEDIAN_CHANGE * before
    # The likelihood of a change from a quarter to three quarters of large ones.
    gain = np.cumsum(np.where(large, 1.0, -1.0)[::-1])[::-1]
    return low + 1 + int(np.argmax(gain))
