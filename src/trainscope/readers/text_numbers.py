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
from trainscope.readers.text_pieces import Bounds, replaced
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
    text: bytes
    bounds: Bounds
    """Where each number begins and ends in `text`."""

    def written(self, number: int) -> bytes:
        """Return a number as written, without a plus sign."""
        begin, end = self.bounds[2 * number + 1 : 2 * number + 3].tolist()
        return self.text[begin:end].removeprefix(b"+")


def numbers_of(block: bytes) -> Numbers:
    """Return the numbers of a block of text, which holds no NUL."""
    if len(block) < _FEW:
        return numbers_by_pattern(block)
    text = b"".join((_BEFORE, block, _AFTER))
    flags = np.frombuffer(text.translate(_FLAGS), np.uint8)
    places = _places(flags)
    if places is None:
        return numbers_by_pattern(block)
    bounds = np.empty(2 * len(places[0]) + 2, np.int32)
    bounds[0], bounds[-1] = len(_BEFORE), len(text) - len(_AFTER)
    bounds[1:-1:2], bounds[2:-1:2] = places
    return _taken(text, bounds)


def numbers_by_pattern(block: bytes) -> Numbers:
    """Return the numbers of a block of text, found one after the other."""
    places = [place for found in NUMBER.finditer(block) for place in found.span()]
    return _taken(block, np.array([0, *places, len(block)], np.int32))


def _taken(text: bytes, bounds: Bounds) -> Numbers:
    return Numbers(replaced(text, bounds, b"\0"), values_of(text, bounds), text, bounds)


def _places(flags: Flags) -> tuple[Indices, Indices] | None:
    """Return where each number begins, its sign included, and where it ends; None where the text is too odd."""
    inner = _inner(flags)
    edges = np.flatnonzero(inner[1:] != inner[:-1]) + 1
    begin, end = edges[::2].copy(), edges[1::2].copy()
    start, stop = begin.copy(), end.copy()
    live = (flags[begin] & _DIGIT != 0) & (flags[begin - 1] & _WORD == 0)
    rest = np.flatnonzero(~live & (end - begin > 1))
    if len(rest):
        later = _later_starts(flags, begin[rest], end[rest])
        found = later >= 0
        live[rest[found]] = True
        start[rest[found]] = later[found]
    trailing = np.flatnonzero(live & (flags[end - 1] & _BREAK != 0))
    while len(trailing):
        stop[trailing] -= 1
        trailing = trailing[flags[stop[trailing] - 1] & _BREAK != 0]
    if not _take_powers(flags, begin, end, start, stop, live):
        return None
    if not live.all():
        start, stop = start[live], stop[live]
    signed = np.flatnonzero(flags[start - 1] & _SIGN)
    signed = signed[flags[start[signed] - 2] & (_WORD | _POINT) == 0]
    start[signed] -= 1
    return start, stop


def _inner(flags: Flags) -> Mask:
    """Return which bytes may be of a number: digits, points beside others of them, commas and colons between others."""
    run = flags & _INNER != 0
    before, body, after = run[:-2], flags[1:-1], run[2:]
    beside, between = (body & _POINT != 0) & (before | after), (body & _BREAK != 0) & before & after
    out = np.zeros(len(flags), np.bool_)
    out[1:-1] = (body & _DIGIT != 0) | beside | between
    return out


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
