"""Arrow columns to ours, without a Python object per cell.

Buffers are read directly: ``ChunkedArray.to_numpy`` imports pandas where it is installed, which takes
longer than reading most logs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trainscope.core.run import FloatArray
from trainscope.readers.table import ABSENT, NUMBER, Column, from_strings, numeric

if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN_NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"


def column_of(values: pa.ChunkedArray, *, missing: int = ABSENT, decimal: str = ".") -> Column | None:
    """Return an Arrow column as ours; None if it holds neither numbers nor text.

    Parameters
    ----------
    values : pyarrow.ChunkedArray
        The column.
    missing : int
        State of its nulls.
    decimal : str
        Decimal mark of numbers written as text.
    """
    import pyarrow as pa

    kind = values.type
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    if pa.types.is_string(kind):
        return _text_column(values, missing, decimal)
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        # safe=False: integers beyond 2**53 lose their last digits, as in any float.
        return numeric(_floats(values.cast(pa.float64(), safe=False)), _nulls(values), state=missing)
    if pa.types.is_null(kind):
        return Column(np.full(len(values), np.nan), np.full(len(values), missing, np.uint8))
    return None


def _floats(values: pa.ChunkedArray) -> FloatArray:
    """Return (n,) float64; what stands where a null is, is undefined."""
    out = np.empty(len(values))
    start = 0
    for chunk in values.chunks:
        raw = np.frombuffer(chunk.buffers()[1], np.float64, count=chunk.offset + len(chunk))
        out[start : start + len(chunk)] = raw[chunk.offset :]
        start += len(chunk)
    return out


def _nulls(values: pa.ChunkedArray) -> NDArray[np.bool_] | None:
    if not values.null_count:
        return None
    out = np.zeros(len(values), bool)
    start = 0
    for chunk in values.chunks:
        bits = chunk.buffers()[0]
        if bits is not None and chunk.null_count:
            valid = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
            out[start : start + len(chunk)] = valid[chunk.offset : chunk.offset + len(chunk)] == 0
        start += len(chunk)
    return out


def _text_column(values: pa.ChunkedArray, missing: int, decimal: str) -> Column:
    """Convert plain numbers in bulk and look at the other cells one by one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = pc.fill_null(pc.match_substring_regex(values, _PLAIN_NUMBER), False)
    numbers = pc.if_else(plain, values, pa.scalar(None, pa.string())).cast(pa.float64())
    at = _nulls(numbers)
    value = _floats(numbers)
    state = np.full(len(value), NUMBER, np.uint8)
    rows = np.flatnonzero(at) if at is not None else np.zeros(0, np.int64)
    if not len(rows):
        return Column(value, state)
    others = from_strings(values.take(pa.array(rows)).to_pylist(), decimal=decimal)
    nulls = _nulls(values)
    value[rows], state[rows] = others.value, others.state
    if nulls is not None:
        state[nulls] = missing
    return Column(value, state, {int(rows[i]): what for i, what in others.text.items()})
