"""Columns of tables as steps and values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Points = tuple[IntArray, FloatArray]


def points(table: pa.Table, metric: str) -> Iterator[Points]:
    """Yield the steps and values of one statistic where a table has it."""
    if metric not in table.schema.names or table.column(metric).null_count == len(table):
        return
    column, step = table.column(metric), table.column("step").to_numpy()
    value = (column if column.type == pa.float64() else column.cast(pa.float64())).to_numpy()
    if column.null_count:
        valid = column.is_valid().to_numpy()
        step, value = step[valid], value[valid]
    yield step, value


def last_of_each(step: IntArray) -> IntArray:
    """Return the indices that put `step` in order, the last of equal ones only."""
    if (step[1:] > step[:-1]).all():
        return np.arange(len(step))
    order = np.argsort(step, kind="stable")
    ordered = step[order]
    last = np.ones(len(step), dtype=bool)
    last[:-1] = ordered[1:] != ordered[:-1]
    return order[last]
