"""The numbers of lines, column by column: what stands for the same in lines of several templates comes together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainscope.core.run import FloatArray, IntArray
from trainscope.readers.text_lines import Lines
from trainscope.readers.text_parts import Part


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Lines and the numbers picked from them."""

    line: IntArray
    """(n,) line numbers, from 0."""
    values: FloatArray
    """(n, columns) stored column by column."""


Picks = Sequence[tuple[int, Sequence[int]]]
"""Templates, and which numbers of each make up the columns."""


def rows_of(
    wanted: Sequence[Picks], lines: Lines, scales: Mapping[int, FloatArray] = MappingProxyType({})
) -> list[Rows]:
    """Return the lines of each group of templates, in their order, with the numbers picked.

    The lines lose their numbers: those picked are copied, part by part, and the rest is given up.

    Parameters
    ----------
    scales : dict of int to (templates, columns) float64 array
        For some of the groups, what the numbers are multiplied by.
    """
    counts = np.bincount(lines.of + 1, minlength=len(lines.templates) + 1)[1:]
    group = np.full(len(lines.templates) + 1, -1, np.int16 if len(wanted) < np.iinfo(np.int16).max else np.int32)
    rank = np.zeros(len(lines.templates) + 1, np.int32)
    picks, found = [], []
    for number, templates in enumerate(wanted):
        members = [template for template, _ in templates]
        group[members] = number
        rank[members] = np.arange(len(members))
        picks.append(np.array([pick for _, pick in templates], np.int64))
        size = int(counts[members].sum())
        found.append(Rows(np.empty(size, np.int64), np.empty((size, picks[-1].shape[1]), order="F")))
    filled = [0] * len(wanted)
    parts = lines.parts
    parts.reverse()
    while parts:
        part = parts.pop()
        of = lines.of[part.first : part.first + len(part.width)]
        start = part.start()
        for number, at in _by_group(group[of]):
            rows, done = found[number], filled[number]
            goal = slice(done, done + len(at))
            np.add(at, part.first, out=rows.line[goal])
            _pick(part, start[at], picks[number], rank[of[at]], rows.values[goal])
            if number in scales:
                np.multiply(rows.values[goal], scales[number][rank[of[at]]], out=rows.values[goal])
            filled[number] += len(at)
    return found


def _by_group(group: NDArray[Any]) -> list[tuple[int, IntArray]]:
    """Return the lines of each group that is there."""
    order = np.argsort(group, kind="stable")  # small integers are sorted without comparing them
    sizes = np.bincount(group.astype(np.int64) + 1)
    ends = np.cumsum(sizes)
    return [(int(i) - 1, order[ends[i] - sizes[i] : ends[i]]) for i in np.flatnonzero(sizes) if i]


def _pick(part: Part, start: IntArray, picks: IntArray, rank: NDArray[np.int32], out: FloatArray) -> None:
    """Copy the numbers picked from lines whose numbers begin at `start`."""
    same = (picks == picks[0]).all(axis=0)
    for column in range(picks.shape[1]):
        place = picks[0, column] if same[column] else picks[rank, column]
        np.take(part.values, start + place, out=out[:, column], mode="clip")  # all are inside; "raise" copies twice
