"""A table to runs: splits it, settles the order of its steps, and gives every metric its series.

The one place where all formats meet, so that a resume, a blank cell or a second run in the same file
means the same whatever wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from trainscope.core.errors import NoDataError
from trainscope.core.metrics import canonical_names
from trainscope.core.run import FloatArray, IntArray, Note, Run, Series
from trainscope.readers import clock, roles, splitting
from trainscope.readers.absence import Mask, restore_nan
from trainscope.readers.axis import Axis, choose_axis
from trainscope.readers.counters import mend_counter
from trainscope.readers.derived import with_losses
from trainscope.readers.launches import Launch, launches_of
from trainscope.readers.long_form import widen
from trainscope.readers.notes import counted, quoted, shown
from trainscope.readers.ordering import superseded
from trainscope.readers.repeats import repeat_notes
from trainscope.readers.source import Source
from trainscope.readers.table import NULL, TEXT, Table


@dataclass(frozen=True, slots=True)
class Shape:
    """What the format's reader knows that the table does not say."""

    format: str
    step: str | None = None
    """The column that counts the steps."""
    splits: bool = True
    """Whether a column may tell several runs apart."""


@np.errstate(all="ignore")  # infinities are data here: a difference of two is no warning to a user
def runs_of(table: Table, source: Source, shape: Shape) -> list[Run]:
    """Return the runs that a table holds.

    Raises
    ------
    NoDataError
        If no row has both a step and a number.
    """
    table = roles.fold_statistics(roles.drop_summaries(widen(table, source)))
    table = roles.settle_text(roles.drop_index(table))
    parts = splitting.split_runs(table) if shape.splits else [(None, table)]
    runs = [
        run
        for label, part in parts
        for run in runs_of_part(part, source, shape, label if label is not None else source.name)
    ]
    if not runs:
        raise NoDataError(f"{source.given}: no metric in it: no row holds a number to judge")
    return runs


def runs_of_part(table: Table, source: Source, shape: Shape, name: str) -> list[Run]:
    """Return the launches of one run, called `name`; none if no row holds a number."""
    table = roles.drop_text(splitting.name_phases(table))
    if not table.rows:
        return []
    axis = mend_counter(choose_axis(table, shape.step), table)
    table.notes.extend(axis.notes)
    if not axis.usable.any():
        raise NoDataError(f"{source.given}: no row has a usable step in the column {shown(axis.column or '')}")
    step = axis.step
    if not axis.usable.all():
        rows = np.flatnonzero(axis.usable)
        table, step = table.take(rows), step[rows]
    pieces = launches_of(table, step, axis)
    runs = []
    for number, piece in enumerate(pieces, 1):
        run = _run(piece, axis, source, shape.format, name if len(pieces) == 1 else f"{name}#{number}")
        if run.series:
            runs.append(run)
    return runs


def _run(piece: Launch, axis: Axis, source: Source, fmt: str, name: str) -> Run:
    table, step = piece.table, piece.step
    metrics = [n for n in table.columns if n != axis.column]
    time, used = clock.time_of(table, metrics)
    metrics = [n for n in metrics if n != used]
    table = restore_nan(table, step, metrics)
    notes = [*table.notes, *_order_notes(piece)]
    keep = ~superseded(step, piece.seams)
    counts = {n: int(table.columns[n].has.sum()) for n in metrics}
    notes += _empty_columns([n for n in metrics if not counts[n] and (table.columns[n].state == NULL).any()])
    metrics = [n for n in metrics if counts[n]]
    names = canonical_names(metrics, counts)
    series: dict[str, Series] = {}
    for raw in metrics:
        series[names[raw]] = _series(names[raw], step, table.columns[raw].value, table.columns[raw].has & keep, time)
        notes += _bad_cells(table, raw, step)
    series, derived = with_losses(series)
    notes += derived
    notes += repeat_notes(table, step, [n for n in metrics if len(series[names[n]])], keep, axis.kind)
    return Run(
        name=name,
        source=source.given,
        format=fmt,
        series=MappingProxyType({n: s for n, s in series.items() if len(s)}),
        config=MappingProxyType(_tidy(table.config)),
        notes=tuple(notes),
        x_axis=axis.kind,
    )


def _tidy(config: Mapping[str, object]) -> dict[str, str | int | float | bool | None]:
    out: dict[str, str | int | float | bool | None] = {}
    for key, value in config.items():
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
            out[key] = int(value)
        elif value is None or isinstance(value, (str, int, float, bool)):
            out[key] = value
    return out


def _series(name: str, step: IntArray, value: FloatArray, rows: Mask, time: FloatArray | None) -> Series:
    """Return the points of one metric, sorted, the last of each step."""
    if rows.all() and (step[1:] > step[:-1]).all():
        return Series(name, step, value, time if time is None or np.isfinite(time).all() else None)
    at = np.flatnonzero(rows)
    steps = step[at]
    if (np.diff(steps) <= 0).any():
        order = np.argsort(steps, kind="stable")
        at, steps = at[order], steps[order]
        last = np.append(steps[1:] != steps[:-1], True)
        at, steps = at[last], steps[last]
    times = time[at] if time is not None else None
    if times is not None and not np.isfinite(times).all():
        times = None
    return Series(name, steps, value[at], times)


def _order_notes(piece: Launch) -> list[Note]:
    notes = [
        Note(
            "rewind",
            f"steps {seam.start_step} to {seam.end_step} were logged again after a resume; the later values were kept",
            seam.count,
            seam.start_step,
            seam.end_step,
        )
        for seam in piece.seams
    ]
    if piece.late is not None:
        late = piece.late
        message = f"{counted(late.count, 'row stands', 'rows stand')} after a later step; the rows were sorted"
        notes.append(Note("out_of_order", message, late.count, late.start_step, late.end_step))
    return notes


def _empty_columns(names: list[str]) -> list[Note]:
    names = [name for name in names if not name.startswith("column_")]  # a delimiter at the end of each line
    if not names:
        return []
    message = f"{counted(len(names), 'column has', 'columns have')} no value on any row: {quoted(names)}"
    return [Note("empty_column", message, len(names))]


def _bad_cells(table: Table, name: str, step: IntArray) -> list[Note]:
    column = table.columns[name]
    rows = np.flatnonzero(column.state == TEXT)
    if not len(rows):
        return []
    said = quoted([column.text[int(row)] for row in rows[:3]], len(rows))
    message = f"{counted(len(rows), 'cell', 'cells')} of {shown(name)} hold no number ({said}) and were left out"
    return [Note("bad_cell", message, len(rows), int(step[rows].min()), int(step[rows].max()))]
