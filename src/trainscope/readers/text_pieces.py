"""Texts cut into pieces: joined, compared and converted all at once.

A text and where its pieces begin are all that Arrow needs for an array of strings: nothing is copied to make one, and
no piece becomes an object of its own. Small texts are worked on without Arrow, which takes time to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trainscope.core.run import FloatArray

if TYPE_CHECKING:
    import pyarrow as pa

Bounds: TypeAlias = NDArray[np.int32]
"""(2n + 2,) where the pieces of a text begin, and where the last one ends: what stands before the first of n things
that are looked for, the first one itself, what stands between it and the second..."""

SMALL = 1 << 18
"""Bytes up to which loops are as cheap as loading Arrow."""


def is_small(text: bytes) -> bool:
    """Tell whether a text is worked on without Arrow."""
    return len(text) < SMALL


def found_in(text: bytes, bounds: Bounds) -> list[bytes]:
    """Return the things that the bounds tell from what stands between them."""
    places = bounds.tolist()
    return [text[begin:end] for begin, end in zip(places[1:-1:2], places[2:-1:2], strict=True)]


def replaced(text: bytes, bounds: Bounds, by: bytes) -> bytes:
    """Return a text with other bytes in the place of each thing found."""
    if is_small(text):
        places = bounds.tolist()
        return by.join([text[begin:end] for begin, end in zip(places[::2], places[1::2], strict=True)])
    import pyarrow as pa

    kept = np.zeros(len(bounds) - 1, np.bool_)
    kept[::2] = True
    only = _pieces(pa.binary(), by, np.array([0, len(by)], np.int32), None)[0]  # pa.scalar() loads pandas
    _, offsets, data = _pieces(pa.binary(), text, bounds, kept).fill_null(only).buffers()
    ends = np.frombuffer(offsets, np.int32, count=len(bounds))
    first, last = int(ends[0]), int(ends[-1])
    return bytes(data.slice(first, last - first))


def floats(text: bytes, bounds: Bounds, plain: NDArray[np.bool_]) -> FloatArray | None:
    """Return what the numbers found are worth; None if one of them is none that Arrow reads.

    Parameters
    ----------
    plain : (n,) bool array
        Which ones to look at. The others are worth NaN.
    """
    import pyarrow as pa

    kept = np.zeros(len(bounds) - 1, np.bool_)
    kept[1::2] = plain
    try:
        values = _pieces(pa.string(), text, bounds, kept).cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    out = np.frombuffer(values.buffers()[1], np.float64, count=len(kept))[1::2].copy()
    out[~plain] = np.nan
    return out


def distinct_lines(text: bytes) -> tuple[list[bytes], NDArray[np.int32]]:
    """Return the different lines of a text in the order of their first ones, and which of them each line is."""
    if is_small(text):
        lines = text.split(b"\n")
        number = {line: i for i, line in enumerate(dict.fromkeys(lines))}
        return list(number), np.fromiter(map(number.__getitem__, lines), np.int32, count=len(lines))
    import pyarrow as pa

    text += b"\n"
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == 10)
    bounds = np.zeros(len(ends) + 1, np.int32)
    np.add(ends, 1, out=bounds[1:], casting="unsafe")
    coded = _pieces(pa.binary(), text, bounds, None).dictionary_encode()
    which = np.frombuffer(coded.indices.buffers()[1], np.int32, count=len(ends))
    return [line[:-1] for line in coded.dictionary.to_pylist()], which


def _pieces(kind: pa.DataType, text: bytes, bounds: NDArray[np.int32], kept: NDArray[np.bool_] | None) -> pa.Array:
    """Return the pieces of a text, null where they are not kept."""
    import pyarrow as pa

    valid = None if kept is None else pa.py_buffer(np.packbits(kept, bitorder="little"))
    return pa.Array.from_buffers(kind, len(bounds) - 1, [valid, pa.py_buffer(bounds), pa.py_buffer(text)])
