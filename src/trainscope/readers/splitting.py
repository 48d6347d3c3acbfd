"""Telling apart what one table mixes: training and evaluation rows, and the rows of several runs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trainscope.core.metrics import tokens
from trainscope.core.run import IntArray, Note
from trainscope.readers.notes import counted, shown
from trainscope.readers.table import Column, Table
from trainscope.readers.vocabulary import PHASE_NAMES, PHASES, RUN_NAMES, STEP_NAMES, plain_name

_MOST_RUNS = 1000


def name_phases(table: Table) -> Table:
    """Split metrics that share a name between training and evaluation rows, told apart by a column.

    ``{"phase": "val", "loss": 2}`` becomes ``eval/loss``. Metrics of one phase only, and those whose name
    already says which, keep their name.
    """
    for name, column in table.columns.items():
        if plain_name(name) not in PHASE_NAMES or not column.text:
            continue
        words = {what: PHASES.get(what.strip().lower()) for what in set(column.text.values())}
        if None in words.values() or len(column.text) < 0.9 * table.rows:
            continue
        phase = np.full(table.rows, "", dtype=object)
        for row, what in column.text.items():
            phase[row] = words[what]
        return _renamed_by(table, name, phase, set(words.values()) - {None})
    return table


def _renamed_by(table: Table, by: str, phase: NDArray[np.object_], present: set[str | None]) -> Table:
    out = Table(table.rows, {}, list(table.notes), dict(table.config))
    split = 0
    for name, column in table.columns.items():
        sides = {p for p in present if column.has[phase == p].any()}
        marked = any(word in PHASES for word in tokens(name))
        if name == by:
            continue
        if plain_name(name) in STEP_NAMES or tokens(name)[-1:] == ("epoch",) or marked or not sides - {"train"}:
            out.columns[name] = column
            continue
        for side in sorted(s for s in sides if s):
            inside = phase == side
            value = np.where(inside, column.value, np.nan)
            state = np.where(inside, column.state, 0).astype(np.uint8)
            text = {row: what for row, what in column.text.items() if inside[row]}
            out.columns[f"{side}/{name}"] = Column(value, state, text)
        split += 1
    if split:
        message = f"{counted(split, 'metric was', 'metrics were')} split by the column {shown(by)}"
        out.notes.append(Note("split_by_phase", message, split))
    return out


def split_runs(table: Table) -> list[tuple[str | None, Table]]:
    """Return the runs of a table that has a column saying which run each row belongs to, with their names."""
    for name, column in table.columns.items():
        if plain_name(name) not in RUN_NAMES:
            continue
        groups = _groups(column, table.rows)
        if groups is None:
            continue
        rest = table.without([name])
        parts: list[tuple[str | None, Table]] = []
        for label, rows in groups.items():
            part = rest.take(rows)
            part.config[name] = label
            # A bare number says nothing: "seed=3" does. Rows without a label keep the file's name.
            parts.append((label if column.text and label else f"{name}={label}" if label else None, part))
        return parts
    return [(None, table)]


def _groups(column: Column, rows: int) -> dict[str, IntArray] | None:
    """Return the rows of each run, None if the column cannot be what tells runs apart."""
    if column.text:
        labels = [column.text.get(row, "") for row in range(rows)]
        if column.has.any():
            labels = [what or (f"{column.value[i]:g}" if column.has[i] else "") for i, what in enumerate(labels)]
    elif column.has.all() and (column.value == np.floor(column.value)).all():
        labels = [f"{value:g}" for value in column.value.tolist()]
    else:
        return None
    groups: dict[str, list[int]] = {}
    for row, label in enumerate(labels):
        groups.setdefault(label, []).append(row)
    if not 2 <= len(groups) <= min(_MOST_RUNS, rows // 2) or len(groups.get("", ())) > rows // 2:
        return None
    return {label: np.array(members) for label, members in groups.items()}
