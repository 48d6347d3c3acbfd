"""From a series of any length to a curve of a few hundred rows, with every extreme and every NaN kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from trainscope.core.run import FloatArray, Series
from trainscope.report.chart_text import unit_of
from trainscope.report.document import Number
from trainscope.report.panels import style_of, window_around
from trainscope.report.reduction import reduce_series
from trainscope.report.text import shorten, well_formed
from trainscope.site.bundle import Curve

BUCKETS = 320
"""Shares of the steps in an envelope: about three pixels each on the widest chart."""
EVIDENCE_BUCKETS = 240
NAME_LENGTH = 200
"""Longest name of a metric, layer or setting in a record."""


def short(name: str) -> str:
    """Return a name as records keep it."""
    return shorten(well_formed(name), NAME_LENGTH)


def curve_of(series: Series, buckets: int = BUCKETS, *, within: tuple[int, int] | None = None) -> Curve:
    """Return a series as a curve.

    Parameters
    ----------
    series : Series
        With at least one point.
    buckets : int
        Shares of the steps; up to twice as many points are kept as they are.
    within : (int, int), optional
        First and last step to keep; all of them if not given.
    """
    first, last = within or (int(series.step[0]), int(series.step[-1]))
    start, stop = np.searchsorted(series.step, [first, last + 1])
    step, value = series.step[start:stop], series.value[start:stop]
    finite = np.isfinite(value)
    common: dict[str, Any] = {
        "name": short(series.name),
        "style": style_of(series.name),
        "unit": unit_of(series.name),
        "count": len(step),
        "broken_count": int(np.count_nonzero(~finite)),
        **_landmarks(step[finite], value[finite]),
    }
    if len(step) <= 2 * buckets:
        return Curve(step=step.tolist(), middle=digits(value), broken=step[~finite].tolist(), **common)
    return Curve(**_envelope(series, first, last, buckets), **common)


def evidence_of(series: Series, start: int, end: int) -> Curve:
    """Return the steps around a finding: every point, unless there are too many to see."""
    return curve_of(series, EVIDENCE_BUCKETS, within=window_around(series, start, end))


def outlined(curve: Curve, rows: int) -> Curve:
    """Return a curve in fewer rows, each with the extremes of those it stands for."""
    if len(curve.step) <= 2 * rows:
        return curve
    size = math.ceil(len(curve.step) / rows)
    groups = [slice(at, at + size) for at in range(0, len(curve.step), size)]
    low, high = curve.low or curve.middle, curve.high or curve.middle
    return curve.model_copy(
        update={
            "step": [curve.step[g][len(curve.step[g]) // 2] for g in groups],
            "middle": [_middle(curve.middle[g]) for g in groups],
            "low": [min((v for v in low[g] if v is not None), default=None) for g in groups],
            "high": [max((v for v in high[g] if v is not None), default=None) for g in groups],
            "broken": curve.broken[:rows],
        }
    )


def digits(values: FloatArray) -> list[float | None]:
    """Return numbers with six significant digits, None for what is not finite."""
    return [float(f"{v:.6g}") if np.isfinite(v) else None for v in values.tolist()]


def exact(value: float) -> Number:
    """Return a number that JSON can hold, whole ones as such."""
    return int(value) if value == int(value) and abs(value) < 2**53 else float(value)


def _landmarks(step: np.ndarray, value: FloatArray) -> dict[str, tuple[int, Number]]:
    if not len(step):
        return {}
    places = {"first": 0, "last": len(step) - 1, "least": int(value.argmin()), "most": int(value.argmax())}
    return {key: (int(step[at]), exact(float(value[at]))) for key, at in places.items()}


def _envelope(series: Series, first: int, last: int, buckets: int) -> dict[str, Any]:
    found = reduce_series(series, first, last, buckets)
    width = max(last - first, 1) / buckets
    # A share that holds a NaN gets a row of its own without a value, after its finite ones: the line breaks.
    place = np.concatenate([found.bucket, found.broken])
    is_gap = np.arange(len(place)) >= len(found.bucket)
    order = np.lexsort((is_gap, place))
    gap = np.full(len(found.broken), np.nan)
    columns = {name: np.concatenate([getattr(found, name), gap])[order] for name in ("middle", "low", "high")}
    return {
        "step": (first + (place[order] + 0.5) * width).astype(np.int64).tolist(),
        **{name: digits(column) for name, column in columns.items()},
        "broken": (first + (found.broken + 0.5) * width).astype(np.int64).tolist(),
    }


def _middle(values: Sequence[float | None]) -> float | None:
    some = sorted(v for v in values if v is not None)
    return some[(len(some) - 1) // 2] if some else None
