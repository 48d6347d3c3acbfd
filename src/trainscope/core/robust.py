"""Robust statistics, arrays to arrays. Knows nothing of runs, metrics or findings.

Every function is vectorised and, for long series, works on a coarser grid (``hop``), so that a million
points cost well under a second.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MAD_TO_SIGMA = 1.4826
"""Makes the median absolute deviation estimate the standard deviation of Gaussian noise."""
GRID = 4_096
"""Most windows that a rolling statistic evaluates on one series."""


SQRT_6 = 2.449489742783178
ENOUGH = 65_536
"""Most values that one estimate of the noise needs."""


def mad_sigma(value: FloatArray) -> float:
    """Return 1.4826 times the median absolute deviation; 0.0 for an empty array.

    Of a long array, 65,536 evenly spaced values are used: the error is below 1 %.
    """
    if not len(value):
        return 0.0
    value = value[:: max(1, len(value) // ENOUGH)]
    return MAD_TO_SIGMA * float(np.median(np.abs(value - np.median(value))))


def hop_for(n: int) -> int:
    """Return every how many points a rolling statistic is evaluated on a series of `n` points."""
    return max(1, n // GRID)


def trailing_median(value: FloatArray, window: int, hop: int, start: int) -> FloatArray:
    """Median of the `window` points before each point, not counting the point itself.

    Parameters
    ----------
    value : (n,) float64 array
        Finite values.
    window : int
        Points of history; fewer are used near the beginning.
    hop : int
        Evaluated at every `hop`-th point and held until the next.
    start : int
        Points needed before the first answer.

    Returns
    -------
    (n,) float64 array
        NaN where fewer than `start` points came before.
    """
    return _trailing(value, window, hop, start, _medians)


def trailing_mad_sigma(value: FloatArray, window: int, hop: int, start: int) -> FloatArray:
    """Scaled MAD of the `window` points before each point; arguments as :func:`trailing_median`."""

    def spread(rows: FloatArray, size: IntArray | None = None) -> FloatArray:
        deviation = np.abs(rows - _medians(rows, size)[:, None])
        return np.asarray(MAD_TO_SIGMA * _medians(deviation, size))

    return _trailing(value, window, hop, start, spread)


def _medians(rows: FloatArray, size: IntArray | None = None) -> FloatArray:
    """Return the median of each row, or of the first `size` values of each."""
    if size is None:
        return np.asarray(np.median(rows, axis=-1))
    padded = np.where(np.arange(rows.shape[1]) < size[:, None], rows, np.inf)
    padded.sort(axis=1)
    at = np.arange(len(rows))
    below, above = padded[at, (size - 1) // 2], padded[at, size // 2]
    return np.where(size % 2 == 1, above, (below + above) / 2)


def _trailing(value: FloatArray, window: int, hop: int, start: int, statistic: Callable[..., FloatArray]) -> FloatArray:
    n = len(value)
    out = np.full(n, np.nan)
    ends = np.arange(max(start, 1), min(window, n), max(hop, 1 + window // 64))
    if len(ends):
        # All at once: one call of a statistic costs more than its arithmetic.
        early = statistic(np.broadcast_to(value[: ends[-1]], (len(ends), int(ends[-1]))), ends)
        out[ends[0] :] = np.repeat(early, np.diff(np.append(ends, n)))
    if n > window:
        anchors = statistic(sliding_window_view(value[:-1], window)[::hop])
        out[window:] = np.repeat(anchors, hop)[: n - window]
    return out


def lasting(mask: NDArray[np.bool_], mostly: float = 0.9) -> int | None:
    """Return the first index of `mask` from which `mostly` of all are true to the end; None if there is none."""
    agreed = np.cumsum(mask[::-1])[::-1] / np.arange(len(mask), 0, -1)
    since = np.flatnonzero(mask & (agreed >= mostly))
    return int(since[0]) if len(since) else None


def running_medians(value: FloatArray, windows: int) -> FloatArray:
    """Return (n,) medians of the points from each one on, over 1/`windows` of all and at least five.

    The last ones repeat where the window ends.
    """
    width = max(5, len(value) // windows)
    inner = np.median(sliding_window_view(value, width), axis=1)
    return np.concatenate((inner, np.full(width - 1, inner[-1])))


def stretches(mask: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return (k, 2) indices of the unbroken stretches of True: first point, and the point after the last."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    return edges.reshape(-1, 2)


def block_medians(value: FloatArray, size: int) -> FloatArray:
    """Median of each block of `size` points; a last, shorter block joins its neighbour.

    Returns
    -------
    (n // size,) float64 array
        At least one block if there is any point.
    """
    n = len(value) // size
    if n <= 1:
        return np.array([np.median(value)]) if len(value) else np.empty(0)
    whole = np.median(value[: (n - 1) * size].reshape(n - 1, size), axis=1)
    return np.append(whole, np.median(value[(n - 1) * size :]))


def lag1(value: FloatArray) -> float:
    """Lag-1 autocorrelation of `value` after clipping at 4 scaled MADs, within 0 and 0.95."""
    if len(value) < 8:
        return 0.0
    sigma = mad_sigma(value)
    if sigma == 0.0:
        return 0.0
    clipped = np.clip((value - np.median(value)) / sigma, -4.0, 4.0)
    clipped = clipped - clipped.mean()
    power = float(clipped @ clipped)
    return min(0.95, max(0.0, float(clipped[1:] @ clipped[:-1]) / power)) if power > 0 else 0.0


def difference_sigma(value: FloatArray) -> float:
    """Noise of a series with a smooth trend, from second differences; robust to steps and outliers.

    The second difference of white noise of standard deviation s has standard deviation s * sqrt(6).
    """
    if len(value) < 5:
        return mad_sigma(value)
    return mad_sigma(np.diff(value, 2)) / SQRT_6


def quantum(value: FloatArray) -> float:
    """Return the rounding step of a series that was logged with few digits, 0.0 if it was not.

    A series counts as rounded when at most half of (up to 4,096 evenly spaced) values are distinct.
    """
    sample = value[:: max(1, len(value) // 4096)]
    distinct = np.unique(sample)
    if len(distinct) < 2 or 2 * len(distinct) > len(sample):
        return 0.0
    return float(np.diff(distinct).min())


def theil_sen(step: FloatArray, value: FloatArray) -> float:
    """Median of all pairwise slopes, in value per step (Theil 1950, Sen 1968); 200 points at most are used."""
    if len(step) > 200:
        pick = np.linspace(0, len(step) - 1, 200).astype(np.int64)
        step, value = step[pick], value[pick]
    i, j = np.triu_indices(len(step), 1)
    return float(np.median((value[j] - value[i]) / (step[j] - step[i]))) if len(i) else 0.0
