"""Rows and columns as a log has them, before anything is judged: numbers, blanks and text, all kept apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from trainscope.core.errors import ReadError
from trainscope.core.run import FloatArray, IntArray, Note, Scalar
from trainscope.readers import cells

ABSENT, NUMBER, NULL, TEXT = 0, 1, 2, 3
"""State of a cell: the row has no such key; a number (NaN and infinity too); an explicit null or a blank
cell, which may stand for either; anything else."""

MAX_COLUMNS = 10_000
"""Most metrics of one log: a model's layers have some thousands, a name with the step in it has no end."""
MAX_CELLS = 1 << 28
"""Most cells of one log, 9 bytes each, blanks too."""

NO_TEXT: Mapping[int, str] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column of n cells."""

    value: FloatArray
    """(n,) the number, NaN where there is none."""
    state: NDArray[np.uint8]
    """(n,) ABSENT, NUMBER, NULL or TEXT."""
    text: Mapping[int, str] = field(default_factory=lambda: NO_TEXT)
    """Row to what it says, for TEXT cells."""

    @property
    def has(self) -> NDArray[np.bool_]:
        """(n,) where the cell is a number."""
        return np.equal(self.state, NUMBER)

    def take(self, rows: IntArray) -> Column:
        """Return the cells of `rows`, in that order."""
        text = NO_TEXT
        if self.text:
            old = {row: new for new, row in enumerate(rows.tolist())}
            text = {old[row]: what for row, what in self.text.items() if row in old}
        return Column(self.value[rows], self.state[rows], text)


@dataclass(slots=True, eq=False)
class Table:
    """A log as rows and columns, with what is known of it so far."""

    rows: int
    columns: dict[str, Column]
    notes: list[Note] = field(default_factory=list)
    config: dict[str, Scalar] = field(default_factory=dict)

    def take(self, rows: IntArray) -> Table:
        """Return the table of `rows`, in that order."""
        columns = {name: column.take(rows) for name, column in self.columns.items()}
        return Table(len(rows), columns, list(self.notes), dict(self.config))

    def without(self, names: Iterable[str]) -> Table:
        """Return the table without the columns called `names`."""
        gone = set(names)
        columns = {name: column for name, column in self.columns.items() if name not in gone}
        return Table(self.rows, columns, list(self.notes), dict(self.config))


def check_size(given: str, columns: int, rows: int = 0) -> None:
    """Refuse a log that has too many columns for a table.

    Raises
    ------
    ReadError
        If there are more than ``MAX_COLUMNS`` columns or ``MAX_CELLS`` cells; says so of the log called `given`.
    """
    if columns > MAX_COLUMNS:
        raise ReadError(given, f"has more than {MAX_COLUMNS} different metric names; log fewer, or pick the columns")
    if columns * rows > MAX_CELLS:
        raise ReadError(given, f"has {rows} rows and {columns} metric names, too many for one table; pick the columns")


def numeric(value: FloatArray, missing: NDArray[np.bool_] | None = None, state: int = NULL) -> Column:
    """Return a column of numbers; cells marked in `missing` get `state`."""
    states = np.full(len(value), NUMBER, np.uint8)
    if missing is not None and missing.any():
        states[missing] = state
        value = np.where(missing, np.nan, value)
    return Column(np.asarray(value, np.float64), states)


def from_strings(values: Sequence[str | None], *, decimal: str = ".") -> Column:
    """Return a column from text cells; None is a cell that the row does not have."""
    whole = _all_floats(values)
    if whole is not None:
        return numeric(whole)
    value = np.full(len(values), np.nan)
    state = np.zeros(len(values), np.uint8)
    text: dict[int, str] = {}
    seen: dict[str, tuple[int, float]] = {}
    parse = partial(cells.number, decimal=decimal)
    for row, cell in enumerate(values):
        if cell is None:
            continue
        known = seen.get(cell)
        if known is None:
            known = seen[cell] = _judge(cell, parse(cell))
        state[row], value[row] = known
        if known[0] == TEXT:
            text[row] = cell
    return Column(value, state, text)


def _all_floats(values: Sequence[str | None]) -> FloatArray | None:
    """Return the values of a column in which every cell is a plain number, at the speed of C."""
    try:
        found = np.fromiter(map(float, values), np.float64, count=len(values))  # type: ignore[arg-type]
        return None if "_" in "".join(values) else found  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _judge(cell: str, parsed: float | None) -> tuple[int, float]:
    if parsed is not None:
        return NUMBER, parsed
    return (NULL if cells.is_blank(cell) else TEXT), np.nan


def from_objects(values: Sequence[object]) -> Column:
    """Return a column from JSON values."""
    kinds = set(map(type, values))
    if kinds <= {float, int}:
        try:
            return numeric(np.array(values, np.float64))
        except OverflowError:
            pass  # an integer beyond the range of a float: cell by cell below
    value = np.full(len(values), np.nan)
    state = np.full(len(values), NUMBER, np.uint8)
    text: dict[int, str] = {}
    for row, cell in enumerate(values):
        if isinstance(cell, (int, float)):
            value[row] = _as_float(cell)
        elif cell is None:
            state[row] = NULL
        else:
            said = cell if isinstance(cell, str) else f"a {type(cell).__name__}"
            state[row], value[row] = _judge(said, cells.number(said))
            if state[row] == TEXT:
                text[row] = said
    return Column(value, state, text)


def _as_float(cell: float) -> float:
    try:
        return float(cell)
    except OverflowError:
        return np.inf if cell > 0 else -np.inf


def concatenate(tables: Sequence[Table]) -> Table:
    """Stack tables; a column that one of them lacks is ABSENT there. Notes of equal kind are not merged."""
    rows = sum(table.rows for table in tables)
    names = dict.fromkeys(name for table in tables for name in table.columns)
    columns = {}
    for name in names:
        value, state, text = np.full(rows, np.nan), np.zeros(rows, np.uint8), {}
        start = 0
        for table in tables:
            column = table.columns.get(name)
            if column is not None:
                value[start : start + table.rows] = column.value
                state[start : start + table.rows] = column.state
                text.update({start + row: what for row, what in column.text.items()})
            start += table.rows
        columns[name] = Column(value, state, text)
    notes = [note for table in tables for note in table.notes]
    config = {key: value for table in tables for key, value in table.config.items()}
    return Table(rows, columns, notes, config)
