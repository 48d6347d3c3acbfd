"""A series as one line of block characters, for terminals."""

from __future__ import annotations

import numpy as np

from trainscope.core.run import Series

BLOCKS = "▁▂▃▄▅▆▇█"
NON_FINITE = "×"


def sparkline(series: Series, width: int) -> str:
    """Return `series` in at most `width` characters.

    Each character stands for an equal share of the step range and shows the value furthest from the
    median there, so that a spike of one step stays visible. ``×`` holds a NaN or infinity, a space nothing.
    The scale runs from the least value to the 99th percentile; what lies above is drawn at full height.
    """
    if not len(series) or width < 1:
        return ""
    finite = series.value[np.isfinite(series.value)]
    low, high = (float(finite.min()), float(np.percentile(finite, 99))) if len(finite) else (0.0, 0.0)
    middle = float(np.median(finite)) if len(finite) else 0.0
    column = columns(series, width)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    cells = [" "] * width
    for start, stop in zip(starts, [*starts[1:], len(column)], strict=True):
        values = series.value[start:stop]
        if not np.isfinite(values).all():
            char = NON_FINITE
        else:
            value = float(values[np.argmax(np.abs(values - middle))])
            share = (value - low) / (high - low) if high > low else 0.0
            char = BLOCKS[int(np.clip(share * len(BLOCKS), 0, len(BLOCKS) - 1))]
        cells[int(column[start])] = char
    return "".join(cells[: min(width, len(series))])


def columns(series: Series, width: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the 0-based column of each point, non-decreasing."""
    first, last = int(series.step[0]), int(series.step[-1])
    span = max(last - first, 1)
    share = (series.step.astype(np.float64) - first) / span
    return np.minimum((share * min(width, len(series))).astype(np.int64), min(width, len(series)) - 1)


def marked_columns(series: Series, start: int, end: int, width: int) -> tuple[int, int]:
    """Return the half-open range of columns that the steps from `start` to `end` cover, at least one wide."""
    column = columns(series, width)
    first = int(np.searchsorted(series.step, start, side="left"))
    last = int(np.searchsorted(series.step, end, side="right")) - 1
    first = min(first, len(series) - 1)
    return int(column[first]), int(column[max(last, first)]) + 1
