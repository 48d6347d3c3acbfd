r"""Text to templates: every line with its numbers taken out, and the numbers beside them.

The lines of one print statement differ only in their numbers, so they share a template. Bytes are worked on in
blocks, with one pass of one pattern: text and numbers come apart as ``split`` leaves them, and neither a line
nor a number costs a step of Python.

Understood as a number: plain and scientific ones, NaN and infinity in the usual spellings, thousands separators,
clocks (``1:02:03``) as seconds. What only looks like a number (a version, ``1,2,3``) is NaN. Digits within a word
(``fp16``, ``loss_2``) belong to the word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.run import FloatArray, IntArray

MASK = "\0"
"""What stands for a number in a template; the decoder leaves no NUL in a text."""
MAX_TEMPLATE = 1 << 14
"""Bytes. A longer line is a dump, not a line of metrics."""
MAX_NUMBERS = 400
"""Most numbers of one line of metrics."""
_BLOCK_BYTES = 1 << 22
_MOST_TEMPLATES = 1 << 17
"""Templates kept at a time; those seen once are forgotten beyond."""

# The pattern that splits starts at a digit, because that is three times as fast as to look for signs and for
# words such as nan too. So those are written as digits before: "_5" for -5, "0:." for nan, "1:." for infinity.
_NUMBER = re.compile(rb"(\b_?\d[\d.,:]*(?<![,:])(?:[eE][-+]?\d+)?)")
# The literal comes first in each of these, for the search is ten times as fast with one.
_MINUS = re.compile(rb"-(?<![\w.]-)(?=\.?\d)")
_PLUS = re.compile(rb"\+(?<![\w.]\+)(?=\.?\d)")
_BARE_POINT = re.compile(rb"\.(?<=[\s_=:(\[]\.)(?=\d)")
_SPELLINGS = ((b"0:.", b"nan NaN NAN"), (b"1:.", b"inf Inf INF Infinity infinity"))
_WORDS = tuple(
    (word, re.compile(word + rb"(?<![\w.]" + word + rb")(?!\w)"), digits)
    for digits, words in _SPELLINGS
    for word in words.split()
)
_C_RUNTIME = re.compile(rb"1\.#(IND|QNAN|INF)\d*")
_THOUSANDS = re.compile(rb"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_ANSI = re.compile(rb"\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,512}(?:\x07|\x1b\\)?|[@-_])")


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """What lines of one kind have in common."""

    text: str
    """The line, ``MASK`` for each number."""
    sample: tuple[str, ...]
    """The numbers of its first line, as written."""
    count: int
    """How many lines have it."""


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """A text as templates and numbers."""

    templates: tuple[Template, ...]
    of: NDArray[np.int32]
    """(lines,) index of each line's template, -1 where it has none."""
    start: IntArray
    """(lines,) where the line's numbers begin in `values`."""
    values: FloatArray
    overlong: int = 0
    """Lines of more than ``MAX_TEMPLATE`` bytes or ``MAX_NUMBERS`` numbers, which were not looked at."""


def lines_of(data: bytes) -> Lines:
    """Return a text as templates and numbers.

    Parameters
    ----------
    data : bytes
        UTF-8 without NULs, as :func:`trainscope.readers.decode.decode` leaves it.
    """
    ids = _Ids()
    of: list[NDArray[np.int32]] = []
    counts: list[NDArray[np.int32]] = []
    values: list[FloatArray] = []
    for block in _blocks(data):
        known = len(ids.texts)
        parts = _NUMBER.split(_plain(block))
        numbers = _signed(parts[1::2])
        masked = b"\0".join(parts[::2]).split(b"\n")
        at = np.fromiter(map(ids.__getitem__, masked), np.int32, count=len(masked))
        width = np.array(ids.widths, np.int32)[at]
        ids.keep_samples(known, at, width, numbers)
        of.append(at)
        counts.append(width)
        values.append(_floats(numbers))
        ids.forget_singles(of)
    return _joined(ids, of, counts, values)


def _blocks(data: bytes) -> Iterator[bytes]:
    start, stop = 0, len(data) - data.endswith(b"\n")  # what follows the last line break is no line
    while start < stop:
        end = data.find(b"\n", start + _BLOCK_BYTES, stop)
        end = stop if end < 0 else end
        yield data[start:end]
        start = end + 1


def _plain(block: bytes) -> bytes:
    """Return the text as a terminal shows it, one line an update of a progress bar, its numbers ready to split."""
    if b"\x1b" in block:
        block = _ANSI.sub(b"", block)
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\b" in block:
        block = block.replace(b"\b", b"")
    for word, pattern, digits in _WORDS:
        if word in block:
            block = pattern.sub(digits, block)
    if b"1.#" in block:
        block = _C_RUNTIME.sub(lambda m: b"1:." if m[1] == b"INF" else b"0:.", block)
    if b"-" in block:
        block = _MINUS.sub(b"_", block)
    if b"+" in block:
        block = _PLUS.sub(b"", block)
    if b" ." in block or b"=." in block or b"_." in block or b":." in block:
        block = _BARE_POINT.sub(b"0.", block)
    return block


def _signed(numbers: list[bytes]) -> list[bytes]:
    joined = b"\n".join(numbers)
    return joined.replace(b"_", b"-").split(b"\n") if b"_" in joined else numbers


class _Ids(dict[bytes, int]):
    """Template to number, in the order of their first lines."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[bytes] = []
        self.widths: list[int] = []
        self.samples: list[tuple[bytes, ...]] = []
        self._checked = 0

    def __missing__(self, text: bytes) -> int:
        number = self[text] = len(self.texts)
        self.texts.append(text if len(text) <= MAX_TEMPLATE else b"")
        self.widths.append(text.count(b"\0"))
        return number

    def keep_samples(self, known: int, at: NDArray[np.int32], width: NDArray[np.int32], numbers: list[bytes]) -> None:
        """Keep the numbers of the first line of each template that is new in this block."""
        starts = np.cumsum(width) - width
        found, first = np.unique(at, return_index=True)
        new = found >= known
        for start, count in zip(starts[first[new]].tolist(), width[first[new]].tolist(), strict=True):
            self.samples.append(tuple(numbers[start : start + min(count, MAX_NUMBERS)]))

    def forget_singles(self, of: list[NDArray[np.int32]]) -> None:
        """Drop the texts seen once so far, where there are too many to keep."""
        if len(self) <= _MOST_TEMPLATES:
            return
        seen = np.zeros(len(self.texts), np.int64)
        for part in of:
            seen += np.bincount(part, minlength=len(seen))
        single = seen == 1
        for number in np.flatnonzero(single).tolist():
            self.texts[number] = b""
            self.samples[number] = ()
        for text in [text for text, number in self.items() if single[number]]:
            del self[text]


def _joined(ids: _Ids, of: list[NDArray[np.int32]], counts: list[NDArray[np.int32]], values: list[FloatArray]) -> Lines:
    lines = np.concatenate(of) if of else np.zeros(0, np.int32)
    width = np.concatenate(counts).astype(np.int64) if counts else np.zeros(0, np.int64)
    seen = np.bincount(lines, minlength=len(ids.texts))
    usable = np.array([bool(t) for t in ids.texts], bool) & (np.array(ids.widths, np.int64) <= MAX_NUMBERS)
    number = np.full(len(ids.texts), -1, np.int32)
    number[usable] = np.arange(int(usable.sum()), dtype=np.int32)
    templates = tuple(
        Template(
            ids.texts[i].decode("utf-8", "replace"),
            tuple(s.decode("ascii") for s in ids.samples[i]),
            int(seen[i]),
        )
        for i in np.flatnonzero(usable).tolist()
    )
    overlong = sum(int(n) for i, n in enumerate(seen) if ids.widths[i] > MAX_NUMBERS)
    return Lines(
        templates,
        number[lines],
        np.cumsum(width) - width,
        np.concatenate(values) if values else np.zeros(0),
        overlong,
    )


def _floats(numbers: list[bytes]) -> FloatArray:
    try:
        return np.fromiter(map(float, numbers), np.float64, count=len(numbers))
    except ValueError:
        return np.fromiter(map(_Floats().__getitem__, numbers), np.float64, count=len(numbers))


class _Floats(dict[bytes, float]):
    """Number as written to float, for those that ``float`` does not know."""

    def __missing__(self, text: bytes) -> float:
        try:
            value = float(text)
        except ValueError:
            value = _unusual(text)
        self[text] = value
        return value


def _unusual(text: bytes) -> float:
    if text.endswith(b":."):
        return np.nan if b"0" in text else -np.inf if text.startswith(b"-") else np.inf
    if b":" in text:
        return _seconds(text)
    plain = text.rstrip(b".")
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
