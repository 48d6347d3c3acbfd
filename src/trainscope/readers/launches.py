"""Several launches of a run in one file: where each begins, and which were aborted at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from trainscope.core.run import IntArray, Note
from trainscope.readers.axis import Axis, main_column
from trainscope.readers.notes import counted
from trainscope.readers.ordering import Late, Seam, find_seams
from trainscope.readers.table import Table

_TINY_ROWS = 20
_TINY_SHARE = 0.02
"""A launch of fewer than 3 rows, or of less than this share of the longest one and 20 rows, was aborted."""


@dataclass(frozen=True, slots=True)
class Launch:
    """The rows of one launch, in file order."""

    table: Table
    step: IntArray
    seams: list[Seam]
    late: Late | None


def launches_of(table: Table, step: IntArray, axis: Axis) -> list[Launch]:
    """Cut the table where the run was started anew."""
    main = main_column(table, {axis.column or ""})
    if axis.kind == "row" or main is None:
        return [Launch(table, step, [], None)]
    rows = np.flatnonzero(main.has)
    seams, late = find_seams(step if len(rows) == len(step) else step[rows])
    seams = [_at_row(seam, rows, step) for seam in seams]
    starts = [0, *(seam.row for seam in seams if seam.kind == "restart"), table.rows]
    if len(starts) == 2:
        return [Launch(table, step, seams, late)]
    bounds = list(pairwise(starts))
    sizes = [int(np.searchsorted(rows, b) - np.searchsorted(rows, a)) for a, b in bounds]
    tiny = min(_TINY_ROWS, _TINY_SHARE * max(sizes))
    kept = [i for i, size in enumerate(sizes) if i == len(sizes) - 1 or size >= max(3.0, tiny)]
    lost = sum(b - a for i, (a, b) in enumerate(bounds) if i not in kept)
    pieces = []
    for number, i in enumerate(kept, 1):
        a, b = bounds[i]
        part = table.take(np.arange(a, b))
        part.notes.append(_restart_note(number, len(kept), len(bounds), lost, step[a:b]))
        inside = [_moved(s, a) for s in seams if a < s.row < b and s.kind == "rewind"]
        pieces.append(Launch(part, step[a:b], inside, late if number == 1 else None))
    return pieces


def _at_row(seam: Seam, rows: IntArray, step: IntArray) -> Seam:
    """Move a seam from the main metric's points to the table's rows, before what was logged just ahead."""
    row, previous = int(rows[seam.row]), int(rows[seam.row - 1])
    while row - 1 > previous and step[row - 1] <= seam.start_step:
        row -= 1
    return Seam(seam.kind, row, seam.start_step, seam.end_step, seam.count)


def _moved(seam: Seam, by: int) -> Seam:
    return Seam(seam.kind, seam.row - by, seam.start_step, seam.end_step, seam.count)


def _restart_note(number: int, kept: int, launches: int, lost: int, step: IntArray) -> Note:
    first = int(step[0])
    if kept == 1:
        said = f"{counted(launches - 1, 'aborted launch', 'aborted launches')} ({lost} rows) before it left out"
        return Note("restart", f"the log starts anew at step {first}; {said}", launches - 1, first, first)
    tail = f"; {counted(launches - kept, 'aborted launch', 'aborted launches')} left out" if lost else ""
    message = f"the file holds {kept} runs one after the other; this is run {number}, from step {first} on{tail}"
    return Note("restart", message, launches - 1, first, first)
