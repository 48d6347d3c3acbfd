r"""Numbers as some programs and some countries write them, rewritten as all others do before they are looked for.

Digits in groups (``1_000_000``, Python's ``f"{n:_}"``) lose their marks. Where the numbers of a text have a comma
before their fraction (``0,2534``), it becomes a point, and the points that group their digits (``1.234,5``) go. Which
mark a text uses is told by the numbers that leave no doubt, in a sample of each block.
"""

from __future__ import annotations

import re

_GROUP = re.compile(rb"_\d{3}(?!\d)")
_GROUPED = re.compile(rb"(?<![\w.])\d{1,3}(?:_\d{3})+(?!\w)")
_SAMPLE = 1 << 13
"""Bytes of a block."""
_BEGINS, _ENDS = rb"(?<![\w.,:(\[])[-+]?", rb"(?:[eE][-+]?\d+)?(?=[\s;|)%]|[.,]?\s|$)"
_WITH_COMMA = re.compile(_BEGINS + rb"(?:0,\d+|\d+,(?:\d\d?|\d{4,})|\d{1,3}(?:\.\d{3})+,\d+)" + _ENDS)
_WITH_POINT = re.compile(_BEGINS + rb"\d+\.\d+" + _ENDS)
_OF_COMMAS = re.compile(_BEGINS + rb"(?:\d{1,3}(?:\.\d{3})+|\d+),\d+" + _ENDS)
_FEWEST = 3
_TIMES = 4
"""So many numbers with a comma for one with a point, which a version or a path may hold."""


class Spelling:
    """How a text writes its numbers, as far as it was seen."""

    def __init__(self) -> None:
        self._commas = self._points = 0

    def undone(self, block: bytes) -> bytes:
        """Return the next block of the text with its numbers as they are usually written."""
        if _GROUP.search(block):
            block = _GROUPED.sub(lambda found: found[0].replace(b"_", b""), block)
        sample = block[:_SAMPLE]
        self._commas += len(_WITH_COMMA.findall(sample)) if b"," in sample else 0
        if not self._commas:
            return block
        self._points += len(_WITH_POINT.findall(sample))
        if self._commas < max(_FEWEST, _TIMES * self._points):
            return block
        return _OF_COMMAS.sub(lambda found: found[0].replace(b".", b"").replace(b",", b"."), block)
