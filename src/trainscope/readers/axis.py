"""Which column counts the steps, and what each row's step is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.metrics import Kind, kind, tokens
from trainscope.core.run import FloatArray, IntArray, Note
from trainscope.readers import cells
from trainscope.readers.notes import counted, quoted, shown
from trainscope.readers.table import NULL, NUMBER, TEXT, Column, Table
from trainscope.readers.vocabulary import STEP_NAMES, WEAK_STEP_NAMES, is_clockwork, plain_name

_MAX_STEP = 2.0**62


@dataclass(frozen=True, slots=True)
class Axis:
    """The step of every row."""

    kind: str
    """``step``, ``epoch`` or ``row``."""
    column: str | None
    step: IntArray
    """(n,) meaningless where `usable` is False."""
    usable: NDArray[np.bool_]
    """(n,) whether the row has a step."""
    notes: tuple[Note, ...] = ()


def choose_axis(table: Table, named: str | None = None) -> Axis:
    """Return the axis of a table: a step counter, else whole epochs, else the row number.

    Parameters
    ----------
    table : Table
        The rows of one run.
    named : str, optional
        The column that the caller knows to be the step.
    """
    if named is not None and named in table.columns:
        return _axis("step", named, table)
    by_name: dict[str, str] = {}
    for raw in table.columns:
        by_name.setdefault(plain_name(raw), raw)
    for name in STEP_NAMES:
        if name in by_name and _counts(table.columns[by_name[name]], table.rows):
            return _axis("step", by_name[name], table)
    for name in WEAK_STEP_NAMES:
        if name in by_name and _rises(table.columns[by_name[name]]):
            return _axis("step", by_name[name], table)
    epoch = next((raw for raw in table.columns if tokens(raw)[-1:] in {("epoch",), ("epochs",)}), None)
    if epoch is not None and _is_epoch_axis(table, epoch):
        return _axis("epoch", epoch, table)
    note = Note("row_axis", f"{_why_rows(table, by_name, epoch)}, so its rows are counted from 0", table.rows)
    return Axis("row", None, np.arange(table.rows), np.ones(table.rows, bool), (note,))


def _why_rows(table: Table, by_name: Mapping[str, str], epoch: str | None) -> str:
    """Return why neither a step nor an epoch counts the rows."""
    for name in STEP_NAMES:
        if name in by_name:
            value = _step_values(table.columns[by_name[name]])
            given = value[np.isfinite(value)]
            if len(given) and (given == given[0]).all():
                return f"the column {shown(by_name[name])} says {given[0]:g} on every row"
            return f"the column {shown(by_name[name])} holds no step counter"
    return f"the log has {'only fractional or repeated epochs' if epoch is not None else 'no step column'}"


def _step_values(column: Column) -> FloatArray:
    """Return the column's numbers; ``3/2353`` counts as 3."""
    if not column.text:
        return column.value
    value = column.value.copy()
    for row, what in column.text.items():
        pair = cells.step_of(what)
        if pair is not None:
            value[row] = pair[0]
    return value


def _is_whole(value: FloatArray) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        whole = np.equal(value, np.floor(value))
        return np.logical_and(np.isfinite(value) & whole, np.abs(value) < _MAX_STEP)


def _counts(column: Column, rows: int) -> bool:
    """Tell whether a column can be a step counter: mostly there, mostly whole, not standing still."""
    value = _step_values(column)
    whole = value[_is_whole(value)]
    given = int(np.isin(column.state, (NUMBER, TEXT)).sum())
    if given < 0.5 * rows or len(whole) < 0.5 * given or not len(whole):
        return False
    return len(whole) < 3 or bool((whole != whole[0]).any())


def _rises(column: Column) -> bool:
    """Tell whether every cell is a whole number larger than the one before."""
    return bool(_is_whole(column.value).all()) and bool((np.diff(column.value) > 0).all())


def _is_epoch_axis(table: Table, name: str) -> bool:
    column = table.columns[name]
    whole = _is_whole(column.value)
    if whole.sum() < 0.9 * table.rows:
        return False
    main = main_column(table, {name})
    rows = whole & main.has if main is not None else whole
    epochs = column.value[rows]
    return len(epochs) < 2 or float(np.mean(epochs[1:] == epochs[:-1])) < 0.3


def main_column(table: Table, skip: set[str]) -> Column | None:
    """Return the metric with the most points, losses first; the others are logged around it."""
    best, best_score = None, (0, False)
    for name, column in table.columns.items():
        count = int(column.has.sum())
        if name in skip or not count or is_clockwork(name):
            continue
        score = (count, kind(name) is Kind.LOSS)
        if score > best_score:
            best, best_score = column, score
    return best


def _axis(kind_: str, name: str, table: Table) -> Axis:
    column = table.columns[name]
    value = _step_values(column)
    usable = _is_whole(value)
    step = np.where(usable, value, 0).astype(np.int64)
    notes: list[Note] = []
    if not usable.all():
        step, usable, notes = _carry_forward(table, name, step, usable)
    if not usable.all():
        notes.append(_bad_steps(column, step, usable))
    return Axis(kind_, name, step, usable, tuple(notes))


def _carry_forward(
    table: Table, name: str, step: IntArray, usable: NDArray[np.bool_]
) -> tuple[IntArray, NDArray[np.bool_], list[Note]]:
    """Give rows that have no step by design (an evaluation between training rows) the step before them."""
    main = main_column(table, {name})
    silent = ~usable & (table.columns[name].state != TEXT) & (table.columns[name].state != NUMBER)
    if main is None:
        return step, usable, []
    silent &= ~main.has & (main.state != TEXT)
    if main.has.any():
        silent &= _has_any_number(table, name)
    before = np.maximum.accumulate(np.where(usable, np.arange(table.rows), -1))
    silent &= before >= 0
    if not silent.any():
        return step, usable, []
    step = np.where(silent, step[np.maximum(before, 0)], step)
    count = int(silent.sum())
    note = Note(
        "assumed_step",
        f"{counted(count, 'row has', 'rows have')} no step and got that of the row before",
        count,
        int(step[silent].min()),
        int(step[silent].max()),
    )
    return step, usable | silent, [note]


def _has_any_number(table: Table, axis: str) -> NDArray[np.bool_]:
    out = np.zeros(table.rows, bool)
    for name, column in table.columns.items():
        if name != axis and not is_clockwork(name):
            out |= column.has
    return out


def _bad_steps(column: Column, step: IntArray, usable: NDArray[np.bool_]) -> Note:
    rows = np.flatnonzero(~usable)
    good = np.flatnonzero(usable)
    said = [_said(column, int(row)) for row in rows[:3]]
    before, after = np.searchsorted(good, rows[0]), np.searchsorted(good, rows[-1])
    start = int(step[good[before - 1]]) if before > 0 else None
    end = int(step[good[after]]) if after < len(good) else None
    count = len(rows)
    return Note(
        "bad_step",
        f"{counted(count, 'row has', 'rows have')} no usable step ({quoted(said, count)}) and "
        f"{'was' if count == 1 else 'were'} left out",
        count,
        start,
        end,
    )


def _said(column: Column, row: int) -> str:
    if column.state[row] == TEXT:
        return column.text[row]
    if column.state[row] == NUMBER:
        return f"{column.value[row]:g}"
    return "blank" if column.state[row] == NULL else "none"
