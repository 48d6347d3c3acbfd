"""A million points in as many columns as a chart has pixels, with every extreme kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.run import FloatArray, IntArray, Series


@dataclass(frozen=True, slots=True, eq=False)
class Envelope:
    """A series in equal shares of the step range; only shares that hold a finite value are listed.

    Attributes
    ----------
    bucket : (m,) int64 array
        Index of the share, strictly increasing.
    low, high, middle : (m,) float64 arrays
        Least, greatest and (lower) median finite value in it.
    high_step, low_step : (m,) int64 arrays
        Where the greatest and the least value are.
    broken : (k,) int64 array
        Shares that hold a NaN or infinity.
    """

    bucket: IntArray
    low: FloatArray
    high: FloatArray
    middle: FloatArray
    low_step: IntArray
    high_step: IntArray
    broken: IntArray


def reduce_series(series: Series, first: int, last: int, buckets: int) -> Envelope:
    """Return the envelope of the points whose step is from `first` to `last`.

    Parameters
    ----------
    series : Series
    first, last : int
        The step range that `buckets` equal shares cover.
    buckets : int
        At least 1.

    Notes
    -----
    Least and greatest value of each share are exact, so the series' own extremes are always among
    them; methods that pick points for their looks (LTTB, striding) lose single-step spikes.
    """
    start, stop = np.searchsorted(series.step, [first, last + 1])
    step, value = series.step[start:stop], series.value[start:stop]
    span = max(last - first, 1)
    # Through floats: exact enough for a column, and no overflow for steps near 2**63.
    share = (step.astype(np.float64) - first) / span
    bucket = np.minimum(share * buckets, buckets - 1).astype(np.int64)
    finite = np.isfinite(value)
    broken = np.unique(bucket[~finite])
    bucket, step, value = bucket[finite], step[finite], value[finite]
    starts = np.flatnonzero(np.diff(bucket, prepend=-1))
    ends = np.append(starts[1:], len(bucket))[: len(starts)]
    # A loop over a thousand columns beats sorting a million points.
    parts = [slice(a, b) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    lows = np.array([p.start + int(value[p].argmin()) for p in parts], dtype=np.int64)
    highs = np.array([p.start + int(value[p].argmax()) for p in parts], dtype=np.int64)
    middles = [_lower_median(value[p]) for p in parts]
    return Envelope(
        bucket=bucket[starts],
        low=value[lows],
        high=value[highs],
        middle=np.array(middles, dtype=np.float64),
        low_step=step[lows],
        high_step=step[highs],
        broken=broken,
    )


def _lower_median(values: FloatArray) -> float:
    k = (len(values) - 1) // 2
    return float(np.partition(values, k)[k])
