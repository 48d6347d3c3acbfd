"""Blank cells that stand for NaN.

Strict JSON writers write NaN as null, and pandas writes it as a blank cell: the same marks that say "not
logged on this row". They are told apart by company.

Algorithm
    A blank cell of metric c is NaN if some other metric d is on that row whose company c otherwise keeps:
    from the first to the last row that has c, at least three in four rows of d have c, and at least nine
    in ten rows of c have d. Clocks and counters are no company, they are on every row. A row with a step
    and nothing else counts as company of the metrics on at least three in four of all rows. A last row
    on which most of the company is missing too is a closing row of totals (AlgoPerf).
    The one training loss of a log that is blank on every row is NaN too: nobody logs a loss to leave it out.
Misses
    Any other metric that is NaN from its first row on, and one logged alone on every other row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from trainscope.core.metrics import canonical
from trainscope.core.run import IntArray, Note
from trainscope.readers.notes import counted, shown
from trainscope.readers.table import NULL, NUMBER, Column, Table
from trainscope.readers.vocabulary import is_clockwork

_KEEPS_COMPANY = 0.75
_IS_KEPT_COMPANY = 0.9
_FEWEST = 2
"""Rows that have both, before one can speak of company."""

Mask = NDArray[np.bool_]


def restore_nan(table: Table, step: IntArray, metrics: Iterable[str]) -> Table:
    """Return the table with the blank cells that stand for NaN made NaN, each metric with a note.

    Parameters
    ----------
    table : Table
        Rows in file order.
    step : (n,) int64 array
        Their steps, for the notes.
    metrics : iterable of str
        The columns that hold metrics.
    """
    names = [name for name in metrics if not is_clockwork(name)]
    having = {name: table.columns[name].has for name in names}
    bare = ~np.logical_or.reduce(list(having.values())) if having else np.zeros(table.rows, bool)
    never = _objective_that_never_was(having)
    out = Table(table.rows, dict(table.columns), list(table.notes), dict(table.config))
    for name in names:
        column = table.columns[name]
        blank = column.state == NULL
        if not blank.any():
            continue
        company = _company(having[name], having.values())
        stands = blank & (name == never or _in_company(having[name], company, bare, alone=len(names) == 1))
        if stands.any() and not _is_closing_row(stands, company):
            out.columns[name] = _as_nan(column, stands)
            out.notes.append(_note(name, step[stands]))
    return out


def _objective_that_never_was(having: Mapping[str, Mask]) -> str | None:
    """Return the training loss if the log has one column for it, and no number in that column."""
    losses = [name for name in having if canonical(name) == "train/loss"]
    if len(losses) != 1 or having[losses[0]].any():
        return None
    return losses[0]


def _company(has: Mask, others: Iterable[Mask]) -> list[Mask]:
    """Return where each companion of a metric is present."""
    rows = np.flatnonzero(has)
    if not len(rows):
        return []
    span = slice(int(rows[0]), int(rows[-1]) + 1)
    company = []
    for other in others:
        if other is has:
            continue
        both = int(np.count_nonzero(has & other))
        kept = both >= max(_FEWEST, _IS_KEPT_COMPANY * len(rows))
        if kept and both >= _KEEPS_COMPANY * np.count_nonzero(other[span]):
            company.append(other)
    return company


def _in_company(has: Mask, company: list[Mask], bare: Mask, *, alone: bool) -> Mask:
    rows = np.flatnonzero(has)
    if not len(rows):
        return bare if alone else np.zeros(len(has), bool)
    marked = np.logical_or.reduce(company) & ~has if company else np.zeros(len(has), bool)
    if len(rows) >= _KEEPS_COMPANY * np.count_nonzero(~bare):
        marked |= bare
    marked[: rows[0]] = False
    return marked | bare if alone else marked


def _is_closing_row(stands: Mask, company: list[Mask]) -> bool:
    """Tell whether the only blank is on the last row, where most of the company is missing too: a total."""
    if not stands[-1] or stands[:-1].any() or not company:
        return False
    return sum(bool(other[-1]) for other in company) < 0.5 * (len(company) + 1)


def _as_nan(column: Column, rows: Mask) -> Column:
    state = column.state.copy()
    state[rows] = NUMBER
    return Column(column.value, state, column.text)


def _note(name: str, step: IntArray) -> Note:
    count = len(step)
    return Note(
        "null_value",
        f"{counted(count, 'blank value', 'blank values')} of {shown(name)} "
        f"{'was' if count == 1 else 'were'} read as NaN",
        count,
        int(step.min()),
        int(step.max()),
    )
