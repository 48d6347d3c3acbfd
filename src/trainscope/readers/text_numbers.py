r"""Numbers out of a block of text, all of them at once: where they stand, what they are, the text without them.

Algorithm
    The bytes become flags (digit, sign, part of a word...) by one translation; what a number is, is then decided for
    all runs of digits, points, commas and colons together, with array operations and no loop over lines or numbers.
    `NUMBER` says the same as a pattern and is the reading it is tested against.

A number begins with a digit that continues no word (``fp16``, ``loss_2``), or with a point before one; a sign belongs
to it if it joins nothing. ``1,234``, ``1:02:03`` and ``1.2.3`` are one number each; what they are worth is settled
by :mod:`trainscope.readers.text_values`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from trainscope.core.run import FloatArray
from trainscope.readers.text_values import values_of

NUMBER = re.compile(rb"(?:(?<![\w.])[-+](?=\.?\d))?(?:(?<!\w)\d|(?<![\w.])\.(?=\d))[\d.,:]*(?<![,:])(?:[eE][-+]?\d+)?")

Indices: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.uint8]
Mask: TypeAlias = NDArray[np.bool_]

_DIGIT, _INNER, _WORD, _POINT, _SIGN, _POWER, _BREAK = 1, 2, 4, 8, 16, 32, 64
_BEFORE, _AFTER = b"\n\n\n", b"\n\n"
_FEW = 4096
"""Bytes up to which the pattern is as fast."""


def _flags_of(byte: int) -> int:
    char = chr(byte)
    flags = 0
    if char.isascii() and (char.isalnum() or char == "_"):
        flags |= _WORD
    if char in "0123456789":
        flags |= _DIGIT | _INNER
    if char in ".,:":
        flags |= _INNER | (_POINT if char == "." else _BREAK)
    if char in "+-":
        flags |= _SIGN
    return flags | (_POWER if char in "eE" else 0)


_FLAGS = bytes(_flags_of(byte) for byte in range(256))


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A block of text and its numbers."""

    masked: bytes
    """The text, a NUL for each number."""
    values: FloatArray
    digits: bytes
    """The numbers as written, one after the other."""
    offsets: NDArray[np.int32]
    """(n + 1,) where each begins in `digits`."""

    def text(self, number: int) -> bytes:
        """Return a number as written, without a plus sign."""
        return self.digits[self.offsets[number] : self.offsets[number + 1]].removeprefix(b"+")


def numbers_of(block: bytes) -> Numbers:
    """Return the numbers of a block of text, which holds no NUL."""
    places = None if len(block) < _FEW else _places(block)
    if places is None:
        return numbers_by_pattern(block)
    padded, begin, end = places
    inside = np.zeros(len(padded), np.int8)
    inside[begin] = 1
    inside[end] = -1
    within = np.cumsum(inside, dtype=np.int8, out=inside).view(np.bool_)
    digits = padded[within].tobytes()
    masked = padded.copy()
    masked[begin] = 0
    keep = ~within
    keep[begin] = True
    body = slice(len(_BEFORE), -len(_AFTER))
    text = masked[body][keep[body]].tobytes()
    offsets = np.zeros(len(begin) + 1, np.int32)
    np.cumsum(end - begin, out=offsets[1:])
    return Numbers(text, values_of(digits, offsets), digits, offsets)


def numbers_by_pattern(block: bytes) -> Numbers:
    """Return the numbers of a block of text, found one after the other."""
    written = NUMBER.findall(block)
    offsets = np.zeros(len(written) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, written), np.int32, count=len(written)), out=offsets[1:])
    digits = b"".join(written)
    return Numbers(NUMBER.sub(b"\0", block), values_of(digits, offsets), digits, offsets)


def _places(block: bytes) -> tuple[NDArray[np.uint8], Indices, Indices] | None:
    """Return the padded text, and where each number begins, its sign included, and ends; None where it is too odd."""
    raw = b"".join((_BEFORE, block, _AFTER))
    padded = np.frombuffer(raw, np.uint8)
    flags = np.frombuffer(raw.translate(_FLAGS), np.uint8)
    inner = flags & _INNER
    edges = np.flatnonzero(inner[1:] != inner[:-1]) + 1
    begin, end = edges[::2].copy(), edges[1::2].copy()
    start = begin.copy()
    first = flags[begin]
    live = (first & _DIGIT != 0) & (flags[begin - 1] & _WORD == 0)
    rest = np.flatnonzero(~live & (end - begin > 1))
    if len(rest):
        later = _later_starts(flags, begin[rest], end[rest])
        found = later >= 0
        live[rest[found]] = True
        start[rest[found]] = later[found]
    stop = end.copy()
    trailing = np.flatnonzero(live & (flags[end - 1] & _BREAK != 0))
    while len(trailing):
        stop[trailing] -= 1
        trailing = trailing[flags[stop[trailing] - 1] & _BREAK != 0]
    if not _take_powers(flags, begin, end, start, stop, live):
        return None
    chosen = np.flatnonzero(live)
    start, stop = start[chosen], stop[chosen]
    signed = (flags[start - 1] & _SIGN != 0) & (flags[start - 2] & (_WORD | _POINT) == 0)
    return padded, start - signed, stop


def _later_starts(flags: Flags, begin: Indices, end: Indices) -> Indices:
    """Return where a number begins within runs that begin with a word's digits, or with a mark; -1 for nowhere."""
    out = np.full(len(begin), -1, np.int64)
    waiting = np.arange(len(begin))
    at = begin.copy()
    while len(waiting):
        mark, follows = flags[at], flags[at + 1]
        hit = (mark & (_DIGIT | _INNER) == _INNER) & (follows & _DIGIT != 0)
        bare = hit & (mark & _POINT != 0) & (flags[at - 1] & (_WORD | _POINT) == 0)
        out[waiting[hit]] = at[hit] + 1 - bare[hit]
        at += 1
        going = ~hit & (at < end[waiting] - 1)
        waiting, at = waiting[going], at[going]
    return out


def _take_powers(flags: Flags, begin: Indices, end: Indices, start: Indices, stop: Indices, live: Mask) -> bool:
    """Give the powers of ten (``e-05``) to their numbers, in place; False where they stand in a chain (``1e5e5``)."""
    base = np.flatnonzero((flags[end[:-1]] & _POWER != 0) & (flags[end[:-1] - 1] & _BREAK == 0))
    gap = begin[base + 1] - end[base]
    signed = (gap == 2) & (flags[end[base] + 1] & _SIGN != 0)
    base = base[(flags[begin[base + 1]] & _DIGIT != 0) & ((gap == 1) | signed)]
    if not len(base):
        return True
    power = base + 1
    later = _later_starts(flags, begin[power], end[power])
    alone = later < 0
    based = np.zeros(len(begin), np.bool_)
    based[base] = True
    holds = live.copy()  # whether a run holds a number, where the power before another one is none
    holds[power] = ~alone
    known = holds[base]
    if based[power[alone | ~known]].any():
        return False
    ends = begin[power]
    going = np.arange(len(power))
    while len(going):
        ends[going] += 1
        going = going[flags[ends[going]] & _DIGIT != 0]
    power, base, later, ends = power[known], base[known], later[known], ends[known]
    stop[base] = ends
    live[power] = later >= 0
    start[power] = np.maximum(later, 0)
    return True
