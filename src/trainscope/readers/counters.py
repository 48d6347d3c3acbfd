"""Step counters that do not count steps throughout: mended, and said so.

Within an epoch
    ``epoch 0, batch 0..99; epoch 1, batch 0..99``: the counter falls where the epoch rises. Steps are
    counted on, epoch times steps of an epoch.
Epochs among steps
    Training rows say the iteration, evaluation rows the epoch, both as ``step`` (mmengine's scalars.json).
    The evaluation gets the step of the training row before it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trainscope.core.metrics import tokens
from trainscope.core.run import Note
from trainscope.readers.axis import Axis, main_column
from trainscope.readers.notes import counted, shown
from trainscope.readers.table import Table

_SURE = 0.9
"""Share of the rows that must fit the pattern."""


def mend_counter(axis: Axis, table: Table) -> Axis:
    """Return the axis with steps that go on across epochs."""
    if axis.kind != "step":
        return axis
    return _place_evaluations(_count_on(axis, table), table)


def _count_on(axis: Axis, table: Table) -> Axis:
    name = next((n for n in table.columns if tokens(n)[-1:] in {("epoch",), ("epochs",)}), None)
    if name is None or name == axis.column:
        return axis
    epoch = np.floor(table.columns[name].value)
    rows = np.flatnonzero(axis.usable & np.isfinite(epoch) & (np.abs(epoch) < 1e9))
    step, epoch = axis.step[rows], epoch[rows]
    falls = np.flatnonzero(step[1:] < step[:-1]) + 1
    if not len(falls) or len(rows) < axis.usable.sum():
        return axis
    with_epoch = epoch[falls] > epoch[falls - 1]
    rises = np.diff(step)
    if with_epoch.mean() < _SURE or not (rises > 0).any():
        return axis
    # Only a counter that comes back to its beginning is one of the epoch.
    starts = step[falls[with_epoch]]
    interval = int(np.median(rises[rises > 0]))
    if np.median(starts) > step.min() + interval:
        return axis
    length = int(step.max() - step.min()) + min(interval, max(1, int(step.min()) or 1))
    on = axis.step.copy()
    on[rows] = step + ((epoch - epoch.min()) * length).astype(np.int64)
    message = f"{shown(axis.column or '')} starts again each epoch; steps were counted on, {length} an epoch"
    return replace(axis, step=on, notes=(*axis.notes, Note("rebuilt_step", message, len(falls))))


def _place_evaluations(axis: Axis, table: Table) -> Axis:
    main = main_column(table, {axis.column or ""})
    if main is None:
        return axis
    training = axis.usable & main.has
    before = np.maximum.accumulate(np.where(training, np.arange(table.rows), -1))
    rows = np.flatnonzero(axis.usable & ~main.has & (before >= 0))
    if len(rows) < 2:
        return axis
    said, reached = axis.step[rows], axis.step[before[rows]]
    counts_up = bool((np.diff(said) >= 0).all()) and said[0] >= 0 and said[-1] <= 2 * len(rows) + 2
    if not counts_up or np.mean(said < 0.5 * reached) < _SURE:
        return axis
    step = axis.step.copy()
    step[rows] = reached
    rows_say = counted(len(rows), "evaluation row says", "evaluation rows say")
    message = f"{rows_say} the epoch and not the step; each got the step of the row before"
    note = Note("assumed_step", message, len(rows), int(reached.min()), int(reached.max()))
    return replace(axis, step=step, notes=(*axis.notes, note))
