"""The numbers of a text in parts that are filled one after the other and given up one after the other.

A part is an array of its own that is large enough for the system to take it back as soon as nobody holds it, so a
text never takes more than its numbers do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.run import FloatArray, IntArray

PART_NUMBERS = 1 << 22
"""Numbers of a part: 32 MiB, from where on memory that is freed goes back to the system at once."""
_PART_LINES = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Lines that stand together, and their numbers."""

    first: int
    """Number of the first line in the text."""
    width: NDArray[np.int32]
    """(n,) how many numbers each line has."""
    values: FloatArray
    """The numbers of all lines, one after the other."""

    def start(self) -> IntArray:
        """Return (n,) where the numbers of each line begin in `values`."""
        return np.cumsum(self.width, dtype=np.int64) - self.width


class Filling:
    """Parts that are being filled."""

    def __init__(self) -> None:
        self._done: list[Part] = []
        self._widths: list[NDArray[np.int32]] = []
        self._values = np.empty(PART_NUMBERS)
        self._used = self._lines = self._first = 0

    def add(self, width: NDArray[np.int32], values: FloatArray) -> None:
        """Take in the next lines and their numbers."""
        if self._used + len(values) > len(self._values) or self._lines > _PART_LINES:
            self._close()
            self._values = np.empty(max(PART_NUMBERS, len(values)))
        self._values[self._used : self._used + len(values)] = values
        self._used += len(values)
        self._widths.append(width)
        self._lines += len(width)

    def parts(self) -> list[Part]:
        """Return all parts; nothing can be added then."""
        self._close()
        return self._done

    def _close(self) -> None:
        if self._widths:
            width = np.concatenate(self._widths)
            self._done.append(Part(self._first, width, self._values[: self._used]))
            self._first += self._lines
        self._widths.clear()
        self._values = np.empty(0)
        self._used = self._lines = 0
