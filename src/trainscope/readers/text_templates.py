"""Lines without their numbers, and what was met so far of each kind."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.run import FloatArray
from trainscope.readers.text_numbers import Numbers
from trainscope.readers.text_pieces import distinct_lines
from trainscope.readers.text_values import INFINITY, MINUS_INFINITY, NAN

MAX_TEMPLATE = 1 << 14
"""Bytes. A longer line is a dump, not a line of metrics."""
MAX_NUMBERS = 400
"""Most numbers of one line of metrics."""
_MOST_TEMPLATES = 1 << 17
"""Templates kept at a time; those seen once are forgotten beyond."""

# Templates are few, so words that are numbers are looked for in them and not in the text. A word that touches a number
# is none ("5nan").
_WORD = re.compile(
    rb"\0#(?:(?P<nan_c>IND|QNAN|SNAN)|INF)\d*"
    rb"|(?:(?<![\w.\0])(?P<sign>[-+]))?(?<![\w.\0])(?:(?P<nan>nan|NaN|NAN)|inf|Inf|INF|Infinity|infinity)(?!\w)"
)
_NUMBER = re.compile(_WORD.pattern + rb"|\0")


@dataclass(frozen=True, slots=True)
class _Part:
    """One number of a template: the one written at `place`, times `factor`; or `factor` alone where a word says it."""

    place: int
    factor: float
    written: bytes = b""


class _Seen(dict[bytes, int]):
    """Masked line to its number, in the order of their first lines."""

    def __init__(self) -> None:
        super().__init__()
        self.met = 0
        self.fresh: list[bytes] = []
        """Those met since somebody looked."""

    def __missing__(self, text: bytes) -> int:
        number = self[text] = self.met
        self.met += 1
        self.fresh.append(text)
        return number


class Templates:
    """Every template met so far."""

    def __init__(self) -> None:
        self.texts: list[bytes] = []
        self.widths: list[int] = []
        self.samples: list[tuple[bytes, ...]] = []
        self._number: dict[bytes, int] = {}
        self._masked = _Seen()
        self._of = np.zeros(0, np.int32)
        self._written = np.zeros(0, np.int32)
        """Numbers in digits of each masked line."""
        self._wordy: dict[int, list[_Part]] = {}
        """What makes up the numbers of the masked lines in which words are among them."""

    def settled(self, numbers: Numbers) -> tuple[NDArray[np.int32], NDArray[np.int32], FloatArray]:
        """Return the template of each line of a block, how many numbers it has, and all numbers."""
        lines, which = distinct_lines(numbers.masked)
        raw = np.fromiter(map(self._masked.__getitem__, lines), np.int32, count=len(lines))[which]
        first = len(self.texts)
        if self._masked.fresh:
            self._meet()
        at, written = self._of[raw], self._written[raw]
        width, values = written, numbers.values
        wordy = np.isin(raw, list(self._wordy)) if self._wordy else np.zeros(0, np.bool_)
        if wordy.any():
            width = np.array(self.widths, np.int32)[at]
            values = self._with_words(raw, wordy, written, width, values)
        if len(self.texts) > first:
            self._keep_samples(first, raw, at, written, numbers)
        return at, width, values

    def _meet(self) -> None:
        """Take in the masked lines that are new."""
        of, written = [], []
        for number, text in enumerate(self._masked.fresh, len(self._of)):
            count = text.count(b"\0")
            written.append(count)
            plain = text
            if count <= MAX_NUMBERS and len(text) <= MAX_TEMPLATE and _WORD.search(text):
                plain, self._wordy[number] = _with_words_out(text)
                count = len(self._wordy[number])
            if plain not in self._number:
                self._number[plain] = len(self.texts)
                self.texts.append(plain if len(plain) <= MAX_TEMPLATE else b"")
                self.widths.append(count)
            of.append(self._number[plain])
        self._of = np.concatenate((self._of, np.array(of, np.int32)))
        self._written = np.concatenate((self._written, np.array(written, np.int32)))
        self._masked.fresh.clear()

    def _with_words(
        self,
        raw: NDArray[np.int32],
        wordy: NDArray[np.bool_],
        written: NDArray[np.int32],
        width: NDArray[np.int32],
        values: FloatArray,
    ) -> FloatArray:
        """Return the numbers with those among them that are words."""
        out = np.empty(int(width.sum()))
        out[np.repeat(~wordy, width)] = values[np.repeat(~wordy, written)]
        source, goal = np.cumsum(written) - written, np.cumsum(width) - width
        for number in np.unique(raw[wordy]).tolist():
            rows = np.flatnonzero(raw == number)
            for i, part in enumerate(self._wordy[number]):
                out[goal[rows] + i] = part.factor * (values[source[rows] + part.place] if part.place >= 0 else 1.0)
        return out

    def _keep_samples(
        self, first: int, raw: NDArray[np.int32], at: NDArray[np.int32], written: NDArray[np.int32], numbers: Numbers
    ) -> None:
        """Keep the numbers of the first line of each template that is new in this block."""
        starts = np.cumsum(written) - written
        line = np.zeros(len(self.texts), np.int64)
        line[at[::-1]] = np.arange(len(at) - 1, -1, -1)  # of several lines, what is written last stays: the first
        for i in line[first:].tolist():
            start = int(starts[i])
            parts = self._wordy.get(int(raw[i])) or [_Part(j, 1.0) for j in range(min(int(written[i]), MAX_NUMBERS))]
            sample = (part.written or numbers.written(start + part.place) for part in parts[:MAX_NUMBERS])
            self.samples.append(tuple(sample))

    def forget_singles(self, of: list[NDArray[np.int32]]) -> None:
        """Drop the texts seen once so far, where there are too many to keep."""
        if len(self._masked) <= _MOST_TEMPLATES:
            return
        seen = np.zeros(len(self.texts), np.int64)
        for part in of:
            seen += np.bincount(part, minlength=len(seen))
        single = seen == 1
        for number in np.flatnonzero(single).tolist():
            self._number.pop(self.texts[number], None)
            self.texts[number] = b""
            self.samples[number] = ()
        for text in [text for text, number in self._masked.items() if single[self._of[number]]]:
            del self._masked[text]


def _with_words_out(text: bytes) -> tuple[bytes, list[_Part]]:
    """Return a masked line with the words masked too that are numbers, and what makes up its numbers."""
    parts: list[_Part] = []
    between: list[bytes] = []
    at = written = 0
    for found in _NUMBER.finditer(text):
        between.append(text[at : found.start()])
        at = found.end()
        if found[0] == b"\0":
            parts.append(_Part(written, 1.0))
        elif found[0].startswith(b"\0"):
            nan = found["nan_c"] is not None
            parts.append(_Part(written, np.nan if nan else np.inf, NAN if nan else INFINITY))
        elif found["nan"] is not None:
            parts.append(_Part(-1, np.nan, NAN))
        else:
            minus = found["sign"] == b"-"
            parts.append(_Part(-1, -np.inf if minus else np.inf, MINUS_INFINITY if minus else INFINITY))
        written += found[0].startswith(b"\0")
    return b"\0".join([*between, text[at:]]), parts
