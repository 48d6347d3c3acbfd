"""Lines that belong together: one record of a training, often one line, sometimes a header and many lines.

A line that counts steps beside its metrics begins a record, and so does one that only counts and came first the first
time. Lines that do not count belong to the record above them,
as long as no name comes twice and nothing but blank or wordless lines stands between. A counter in the middle of such
a block (the boxes of Stable-Baselines3) counts for all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from trainscope.core.run import FloatArray, IntArray
from trainscope.readers.text_groups import LineKind
from trainscope.readers.text_lines import Lines


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Which record each line of each kind belongs to."""

    count: int
    of: tuple[IntArray, ...]
    """(n,) of each kind."""
    line: IntArray
    """(count,) first line of each record."""

    def spread(self, kind: int, values: FloatArray) -> FloatArray:
        """Return (count,) what the lines of a kind say, NaN for records without one; not to be written to."""
        of = self.of[kind]
        if len(of) == self.count and (of[1:] > of[:-1]).all():
            return values
        out = np.full(self.count, np.nan)
        out[of] = values
        return out


def records_of(kinds: Sequence[LineKind], lines: Lines) -> Records:
    """Return the records that the lines of metrics make up."""
    if len(kinds) == 1 and kinds[0].counts:
        return Records(len(kinds[0]), (np.arange(len(kinds[0])),), kinds[0].line)
    line = np.concatenate([k.line for k in kinds])
    which = np.concatenate([np.full(len(k), i, np.int32) for i, k in enumerate(kinds)])
    order = np.argsort(line, kind="stable")
    line, which = line[order], which[order]
    simple = all(k.counts for k in kinds)
    record = np.arange(len(line)) if simple else _blocks(kinds, line, which, _walls(kinds, lines))
    first = np.flatnonzero(np.diff(record, prepend=-1))
    back = np.empty(len(order), np.int64)
    back[order] = record
    bounds = np.cumsum([0, *(len(k) for k in kinds)])
    of = tuple(back[a:b] for a, b in pairwise(bounds))
    return Records(int(record[-1]) + 1, of, line[first])


def _walls(kinds: Sequence[LineKind], lines: Lines) -> IntArray:
    """Return (lines + 1,) how many lines before each keep apart what is above and below them."""
    apart = np.array([not _is_quiet(t.text) for t in lines.templates] + [True], bool)[lines.of]
    for k in kinds:
        apart[k.line] = False
    return np.concatenate(([0], np.cumsum(apart)))


def _is_quiet(text: str) -> bool:
    """Tell whether a line says nothing of its own: blank, a heading of a box."""
    bare = text.strip(" \t|")
    return not bare or (text.lstrip().startswith("|") and bare.endswith("/") and "\0" not in text)


def _blocks(kinds: Sequence[LineKind], line: IntArray, which: NDArray[np.int32], walls: IntArray) -> IntArray:
    names = [frozenset(f.name for f in k.fields if f.name) for k in kinds]
    strong = np.array([k.counts and (bool(k.metrics()) or _heads(n, line, which, walls)) for n, k in enumerate(kinds)])
    named = np.array([bool(name) for name in names])
    wall = walls[line]
    again = (which[1:] == which[:-1]) & named[which[1:]]
    begins = np.append(True, strong[which[1:]] | (wall[1:] != wall[:-1]) | again)
    held: set[str] = set()
    last = -1
    for row in np.flatnonzero(~begins).tolist():  # those that begin no record for sure
        if row - 1 != last:
            held = set(names[which[row - 1]])
        if held & names[which[row]]:
            begins[row] = True
            held = set()
        held |= names[which[row]]
        last = row
    return np.cumsum(begins) - 1


def _heads(kind: int, line: IntArray, which: NDArray[np.int32], walls: IntArray) -> bool:
    """Tell whether lines such as "Epoch 7" stand above what they count, by the first of them.

    A warning between one and its metrics must not tie it to the metrics of the epoch before.
    """
    first = int(np.argmax(which == kind))
    return first == 0 or bool(walls[line[first]] != walls[line[first - 1]])
