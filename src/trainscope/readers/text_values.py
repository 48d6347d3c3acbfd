"""What numbers are worth as people print them: plain ones in bulk, thousands separators, times of day, durations."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from trainscope.core.run import FloatArray
from trainscope.readers.text_pieces import Bounds, floats, found_in, is_small

NAN, INFINITY, MINUS_INFINITY = b"0:.", b"1:.", b"-1:."
"""How ``nan`` and ``inf`` are kept as numbers."""
UNREADABLE = float(np.array([0x7FF8_0000_0000_0001], np.uint64).view(np.float64)[0])
"""What only looks like a number: a NaN, but another one than that of a log which says ``nan``."""
_THOUSANDS = re.compile(rb"-?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")


@dataclass(frozen=True, slots=True, eq=False)
class _Form:
    """Numbers of one length with marks at the same places: clocks, thousands separators."""

    size: int
    marks: dict[int, bytes]
    """Which bytes may stand where."""
    weights: tuple[int, ...]
    """What each digit counts, or counts in the last part."""
    leading: bool = True
    """Whether the first digit may be a nought."""
    last: int = 0
    """Digits of a last part that is a fraction, to be divided by 1000 before it is added."""

    def worth(self, text: NDArray[np.uint8]) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return what (n, size) bytes are worth, and which rows have this form."""
        fits = np.ones(len(text), np.bool_)
        whole, fraction = np.zeros(len(text), np.int64), np.zeros(len(text), np.int64)
        figures = 0
        for place in range(self.size):
            byte = text[:, place]
            if place in self.marks:
                fits &= np.logical_or.reduce([byte == mark for mark in self.marks[place]])
                continue
            figure = byte - np.uint8(48)
            fits &= figure <= 9
            if figures == 0 and not self.leading:
                fits &= figure > 0
            part = fraction if figures >= len(self.weights) - self.last else whole
            part += np.multiply(figure, self.weights[figures], dtype=np.int64)
            figures += 1
        return whole + fraction / 1000.0 if self.last else whole.astype(np.float64), fits


def _thousands(size: int) -> _Form:
    marks = {i: b"," for i in range(size) if (size - i) % 4 == 0}
    figures = size - len(marks)
    return _Form(size, marks, tuple(10 ** (figures - 1 - i) for i in range(figures)), leading=False)


_FORMS = (
    _Form(5, {2: b":"}, (600, 60, 10, 1)),
    _Form(7, {1: b":", 4: b":"}, (3600, 600, 60, 10, 1)),
    _Form(8, {2: b":", 5: b":"}, (36000, 3600, 600, 60, 10, 1)),
    _Form(12, {2: b":", 5: b":", 8: b",."}, (36000, 3600, 600, 60, 10000, 1000, 100, 10, 1), last=5),
    *(_thousands(size) for size in (5, 6, 7, 9, 10, 11)),
)


def values_of(text: bytes, bounds: Bounds) -> FloatArray:
    """Return what the numbers of a text are worth.

    Parameters
    ----------
    bounds : (2n + 2,) int32 array
        Where each begins and ends.
    """
    if is_small(text):
        return _one_by_one(text, bounds)
    plain = np.ones(len(bounds) // 2 - 1, np.bool_)
    plain[_holding(_breaks(text), bounds)] = False
    values = floats(text, bounds, plain)
    if values is None:
        points = _holding(np.flatnonzero(np.frombuffer(text, np.uint8) == 46), bounds)
        plain[points[1:][points[1:] == points[:-1]]] = False  # versions
        values = floats(text, bounds, plain)
    if values is None:
        return _one_by_one(text, bounds)
    odd = np.flatnonzero(~plain)
    if len(odd):
        values[odd] = _odd(text, bounds[1:-1:2][odd], bounds[2:-1:2][odd])
    return values


def _breaks(text: bytes) -> NDArray[np.int64]:
    """Return where commas and colons stand that may be within a number: something that is no space follows."""
    byte = np.frombuffer(text, np.uint8)
    return np.flatnonzero(((byte[:-1] == 44) | (byte[:-1] == 58)) & (byte[1:] > 32))


def _holding(places: NDArray[np.int64], bounds: Bounds) -> NDArray[np.int64]:
    """Return which number holds each byte at these places; those in none are left out."""
    piece: NDArray[np.int64] = np.searchsorted(bounds, places.astype(np.int32), side="right") - 1
    return np.asarray(piece[piece & 1 == 1] >> 1)


def _odd(text: bytes, begin: NDArray[np.int32], end: NDArray[np.int32]) -> FloatArray:
    """Return the values of numbers with commas and colons."""
    byte = np.frombuffer(text, np.uint8)
    out = np.full(len(begin), np.nan)
    done = np.zeros(len(begin), np.bool_)
    for form in _FORMS:
        rows = np.flatnonzero((end - begin == form.size) & ~done)
        if len(rows):
            worth, fits = form.worth(sliding_window_view(byte, form.size)[begin[rows]])
            out[rows[fits]], done[rows[fits]] = worth[fits], True
    rest = np.flatnonzero(~done)
    seen = _Worth()
    for i, first, last in zip(rest.tolist(), begin[rest].tolist(), end[rest].tolist(), strict=True):
        out[i] = seen[text[first:last]]
    return out


def _one_by_one(text: bytes, bounds: Bounds) -> FloatArray:
    numbers = found_in(text, bounds)
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
        return UNREADABLE  # a version, a list without spaces


def _seconds(clock: bytes) -> float:
    seconds = 0.0
    try:
        for part in clock.replace(b",", b".").split(b":"):
            seconds = 60 * seconds + float(part)
    except ValueError:
        return UNREADABLE
    return seconds


def is_unreadable(values: FloatArray) -> NDArray[np.bool_]:
    """Return which of (n,) values only looked like numbers in the text."""
    return np.asarray(values.view(np.uint64) == np.float64(UNREADABLE).view(np.uint64))


def is_clock(number: str) -> bool:
    """Tell whether a number, as written, is a time of day or a duration."""
    return ":" in number and not number.endswith(":.")
