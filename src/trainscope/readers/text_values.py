"""What numbers are worth as people print them: plain ones in bulk, thousands separators, times of day, durations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from trainscope.core.run import FloatArray

NAN, INFINITY, MINUS_INFINITY = b"0:.", b"1:.", b"-1:."
"""How ``nan`` and ``inf`` are kept as numbers."""
_FEW = 20_000
"""Numbers up to which a loop is as cheap as the library."""
_THOUSANDS = re.compile(rb"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")


@dataclass(frozen=True, slots=True, eq=False)
class _Form:
    """Numbers of one length with marks at the same places: clocks, thousands separators."""

    size: int
    marks: dict[int, bytes]
    """Which bytes may stand where."""
    weights: tuple[int, ...]
    """What each digit counts, or counts in the last part."""
    last: int = 0
    """Digits of a last part that is a fraction, to be divided by 1000 before it is added."""

    def worth(self, text: NDArray[np.uint8]) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return what (n, size) bytes are worth, and which rows have this form."""
        places = [i for i in range(self.size) if i not in self.marks]
        figures = text[:, places].astype(np.int64) - 48
        fits = np.asarray(((figures >= 0) & (figures <= 9)).all(axis=1))
        for place, allowed in self.marks.items():
            fits &= np.isin(text[:, place], np.frombuffer(allowed, np.uint8))
        cut = len(places) - self.last
        whole = (figures[:, :cut] @ np.array(self.weights[:cut], np.int64)).astype(np.float64)
        if self.last:
            whole += (figures[:, cut:] @ np.array(self.weights[cut:], np.int64)) / 1000.0
        return whole, fits


def _thousands(size: int) -> _Form:
    marks = {i: b"," for i in range(size) if (size - i) % 4 == 0}
    figures = size - len(marks)
    return _Form(size, marks, tuple(10 ** (figures - 1 - i) for i in range(figures)))


_FORMS = (
    _Form(5, {2: b":"}, (600, 60, 10, 1)),
    _Form(7, {1: b":", 4: b":"}, (3600, 600, 60, 10, 1)),
    _Form(8, {2: b":", 5: b":"}, (36000, 3600, 600, 60, 10, 1)),
    _Form(12, {2: b":", 5: b":", 8: b",."}, (36000, 3600, 600, 60, 10000, 1000, 100, 10, 1), last=5),
    *(_thousands(size) for size in (5, 6, 7, 9, 10, 11)),
)


def values_of(digits: bytes, offsets: NDArray[np.int32]) -> FloatArray:
    """Return what numbers are worth.

    Parameters
    ----------
    digits : bytes
        The numbers as written, one after the other.
    offsets : (n + 1,) int32 array
        Where each begins.
    """
    count = len(offsets) - 1
    if count < _FEW:
        return _one_by_one(digits, offsets)
    text = np.frombuffer(digits, np.uint8)
    odd = _holding(np.flatnonzero((text == 44) | (text == 58)), offsets)  # comma, colon
    values = _plain(digits, offsets, odd)
    if values is None:
        points = np.searchsorted(offsets, np.flatnonzero(text == 46), side="right")
        versions = np.unique(points[1:][points[1:] == points[:-1]]) - 1
        odd = np.union1d(odd, versions)
        values = _plain(digits, offsets, odd)
    if values is None:
        return _one_by_one(digits, offsets)
    if len(odd):
        values[odd] = _odd(digits, offsets, odd)
    return values


def _holding(places: NDArray[np.int64], offsets: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return which numbers hold the bytes at these places."""
    if not len(places):
        return places
    found = np.searchsorted(offsets, places, side="right") - 1
    return found[np.concatenate(([True], found[1:] != found[:-1]))]


def _plain(digits: bytes, offsets: NDArray[np.int32], odd: NDArray[np.int64]) -> FloatArray | None:
    """Return the values, NaN for those that are left out; None if one of the others is no plain number."""
    import pyarrow as pa

    count = len(offsets) - 1
    valid = None
    if len(odd):
        bits = np.ones(count, np.bool_)
        bits[odd] = False
        valid = pa.py_buffer(np.packbits(bits, bitorder="little"))
    text = pa.Array.from_buffers(pa.string(), count, [valid, pa.py_buffer(offsets), pa.py_buffer(digits)])
    try:
        values = text.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    out = np.frombuffer(values.buffers()[1], np.float64, count=count).copy()
    out[odd] = np.nan
    return out


def _odd(digits: bytes, offsets: NDArray[np.int32], odd: NDArray[np.int64]) -> FloatArray:
    """Return the values of numbers with commas and colons."""
    begin, end = offsets[odd], offsets[odd + 1]
    text = np.frombuffer(digits, np.uint8)
    out = np.full(len(odd), np.nan)
    done = np.zeros(len(odd), np.bool_)
    for form in _FORMS:
        rows = np.flatnonzero((end - begin == form.size) & ~done)
        if len(rows):
            worth, fits = form.worth(text[begin[rows][:, None] + np.arange(form.size)])
            out[rows[fits]], done[rows[fits]] = worth[fits], True
    rest = np.flatnonzero(~done)
    seen = _Worth()
    for i, first, last in zip(rest.tolist(), begin[rest].tolist(), end[rest].tolist(), strict=True):
        out[i] = seen[digits[first:last]]
    return out


def _one_by_one(digits: bytes, offsets: NDArray[np.int32]) -> FloatArray:
    numbers = [digits[a:b] for a, b in pairwise(offsets.tolist())]
    try:
        return np.fromiter(map(float, numbers), np.float64, count=len(numbers))
    except ValueError:
        return np.fromiter(map(_Worth().__getitem__, numbers), np.float64, count=len(numbers))


class _Worth(dict[bytes, float]):
    """Number as written to float."""

    def __missing__(self, text: bytes) -> float:
        try:
            value = float(text)
        except ValueError:
            value = _unusual(text)
        self[text] = value
        return value


def _unusual(text: bytes) -> float:
    if b":" in text:
        return _seconds(text)
    plain = text.rstrip(b".").removeprefix(b"+")
    if _THOUSANDS.fullmatch(plain):
        plain = plain.replace(b",", b"")
    try:
        return float(plain)
    except ValueError:
        return np.nan  # a version, a list without spaces


def _seconds(clock: bytes) -> float:
    seconds = 0.0
    try:
        for part in clock.replace(b",", b".").split(b":"):
            seconds = 60 * seconds + float(part)
    except ValueError:
        return np.nan
    return seconds


def is_clock(number: str) -> bool:
    """Tell whether a number, as written, is a time of day or a duration."""
    return ":" in number and not number.endswith(":.")
