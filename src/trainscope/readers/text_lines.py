r"""Text to templates: every line with its numbers taken out, and the numbers beside them.

The lines of one print statement differ only in their numbers, so they share a template. Bytes are worked on in
blocks: :mod:`trainscope.readers.text_numbers` takes the numbers out of a block all at once, and a line costs no more
than the look-up of what is left of it (:mod:`trainscope.readers.text_templates`).

Understood as a number: plain and scientific ones, NaN and infinity in the usual spellings, thousands separators,
clocks (``1:02:03``) as seconds. What only looks like a number (a version, ``1,2,3``) is ``text_values.UNREADABLE``.
Digits within a word (``fp16``, ``loss_2``) belong to the word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.readers.text_numbers import numbers_of
from trainscope.readers.text_parts import Filling, Part
from trainscope.readers.text_pieces import replaced
from trainscope.readers.text_spelling import Spelling
from trainscope.readers.text_templates import MAX_NUMBERS, Templates

MASK = "\0"
"""What stands for a number in a template; the decoder leaves no NUL in a text."""

BLOCK_BYTES = 1 << 20
"""What is worked on at a time."""
_ANSI = re.compile(rb"\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,512}(?:\x07|\x1b\\)?|[@-_])")


_ESCAPE, _BRACKET = b"\x1b["


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
    parts: list[Part]
    """The numbers of all lines. Who takes what counts of them empties the list: they are most of what a text takes."""
    overlong: int = 0
    """Lines of more than ``MAX_TEMPLATE`` bytes or ``MAX_NUMBERS`` numbers, which were not looked at."""


def lines_of(data: bytes | Iterable[bytes]) -> Lines:
    """Return a text as templates and numbers.

    Parameters
    ----------
    data : bytes or iterable of bytes
        UTF-8 without NULs, as :func:`trainscope.readers.decode.decode` leaves it; or blocks of it that end with
        whole lines, without the last line break.
    """
    known = Templates()
    of: list[NDArray[np.int32]] = []
    filling = Filling()
    spelling = Spelling()
    for block in blocks_of(data) if isinstance(data, bytes) else data:
        at, width, value = known.settled(numbers_of(spelling.undone(_plain(block))))
        of.append(at)
        filling.add(width, value)
        known.forget_singles(of)
    return _joined(known, of, filling.parts())


def blocks_of(data: bytes) -> Iterator[bytes]:
    """Cut a text into blocks of whole lines, without the line break at the end of each."""
    start, stop = 0, len(data) - data.endswith(b"\n")  # what follows the last line break is no line
    while start <= stop and data:
        end = data.find(b"\n", start + BLOCK_BYTES, stop)
        end = stop if end < 0 else end
        yield data[start:end]
        start = end + 1


def _plain(block: bytes) -> bytes:
    """Return the text as a terminal shows it, one line an update of a progress bar."""
    if b"\x1b" in block:
        block = without_colours(block)
    if b"\r" in block:
        block = block.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\b" in block:
        block = block.replace(b"\b", b"")
    return block


def _joined(known: Templates, of: list[NDArray[np.int32]], parts: list[Part]) -> Lines:
    lines = _emptied(of)
    seen = np.bincount(lines, minlength=len(known.texts))
    usable = np.array([bool(t) for t in known.texts], bool) & (np.array(known.widths, np.int64) <= MAX_NUMBERS)
    number = np.full(len(known.texts), -1, np.int32)
    number[usable] = np.arange(int(usable.sum()), dtype=np.int32)
    templates = tuple(
        Template(
            known.texts[i].decode("utf-8", "replace"),
            tuple(s.decode("ascii") for s in known.samples[i]),
            int(seen[i]),
        )
        for i in np.flatnonzero(usable).tolist()
    )
    overlong = sum(int(n) for i, n in enumerate(seen) if known.widths[i] > MAX_NUMBERS)
    return Lines(templates, number[lines], parts, overlong)


def without_colours(block: bytes) -> bytes:
    """Return a text without the sequences that colour it or move the cursor of a terminal."""
    text = np.frombuffer(block + b"\n\n", np.uint8)
    begin = np.flatnonzero(text == _ESCAPE)
    end = begin + 2
    going = np.arange(len(begin))
    while len(going):  # all sequences at once, a byte of each at a time
        byte = text[end[going]]
        end[going] += 1
        going = going[(byte >= 0x30) & (byte <= 0x3F)]
    last = text[end - 1]
    if (text[begin + 1] != _BRACKET).any() or ((last < 0x40) | (last > 0x7E)).any():
        return _ANSI.sub(b"", block)  # others than colours, or broken ones
    bounds = np.empty(2 * len(begin) + 2, np.int32)
    bounds[0], bounds[-1] = 0, len(block)
    bounds[1:-1:2], bounds[2:-1:2] = begin, end
    return replaced(block, bounds, b"")


def _emptied(parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Join arrays, each of which is given up as soon as it is copied: they are not in memory twice."""
    out = np.empty(sum(map(len, parts)), np.int32)
    at = 0
    parts.reverse()
    while parts:
        part = parts.pop()
        out[at : at + len(part)] = part
        at += len(part)
    return out
