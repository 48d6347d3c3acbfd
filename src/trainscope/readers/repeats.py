"""Steps that a log has more than once: two writers in one file, or the micro-batches of one step.

Only the losses are looked at, and where there is none the other health metrics: an evaluation row repeats the
epoch, the learning rate and the memory of the training row of its step, and nothing is lost by that. A value
that is repeated as it was is no second value.

A log in which every step has the same number of rows, three or more, one directly after the other, was not
written twice by accident: it has a row for each micro-batch of gradient accumulation. The last step may have fewer,
where the run was stopped. Two rows everywhere are more often two processes, and stay duplicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainscope.core.metrics import LOSS_KINDS, Kind, kind
from trainscope.core.run import IntArray, Note
from trainscope.readers.absence import Mask
from trainscope.readers.notes import counted
from trainscope.readers.table import Column, Table

_FEWEST_STEPS = 3
"""Steps of equally many rows, before one can speak of a habit."""
_OTHERS = frozenset({Kind.GRAD_NORM, Kind.REWARD})


@dataclass(frozen=True, slots=True)
class _Repeats:
    steps: IntArray
    """The step of every value that a later, different one of the same step replaced."""
    each: int
    """Rows of every step if that is the same number throughout, else 0."""


def repeat_notes(table: Table, step: IntArray, metrics: Sequence[str], keep: Mask, axis: str) -> list[Note]:
    """Return the note of the metric with the most repeated steps; none if no value was lost.

    Parameters
    ----------
    table : Table
        Rows in file order.
    step : (n,) int64 array
        Their steps.
    metrics : sequence of str
        The columns that hold metrics.
    keep : (n,) bool array
        Rows that no resume replaced.
    axis : str
        ``step``, ``epoch`` or ``row``.
    """
    names = [n for n in metrics if kind(n) in LOSS_KINDS] or [n for n in metrics if kind(n) in _OTHERS]
    found = [_repeats(table.columns[name], step, keep) for name in names]
    worst = max(found, key=lambda one: len(one.steps), default=None)
    if worst is None or not len(worst.steps):
        return []
    word = "epoch" if axis == "epoch" else "step"
    count, first, last = len(worst.steps), int(worst.steps.min()), int(worst.steps.max())
    if worst.each:
        message = f"every {word} has {worst.each} rows, as micro-batches of one update have; the last one was kept"
        return [Note("micro_batches", message, count, first, last)]
    message = f"{counted(count, f'value repeats a {word}', f'values repeat a {word}')}; the last one was kept"
    return [Note("duplicate_step", message, count, first, last)]


def _repeats(column: Column, step: IntArray, keep: Mask) -> _Repeats:
    rows = np.flatnonzero(column.has & keep)
    steps = step if len(rows) == len(step) else step[rows]
    if (steps[1:] > steps[:-1]).all():
        return _Repeats(step[:0], 0)
    order = rows[np.argsort(steps, kind="stable")]
    steps, value = step[order], column.value[order]
    same = (value[1:] == value[:-1]) | (np.isnan(value[1:]) & np.isnan(value[:-1]))
    repeated = steps[:-1][(steps[1:] == steps[:-1]) & ~same]
    _, counts = np.unique(steps, return_counts=True)
    full = counts[:-1] if len(counts) > 1 and counts[-1] < counts[0] else counts
    in_turn = bool((np.diff(step[rows]) >= 0).all())
    regular = in_turn and len(full) >= _FEWEST_STEPS and full[0] > 2 and bool((full == full[0]).all())
    return _Repeats(repeated, int(full[0]) if regular else 0)
