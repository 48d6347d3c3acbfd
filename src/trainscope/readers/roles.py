"""What columns that are no metrics are for: constants, durations, dates, the phase, the run, an index."""

from __future__ import annotations

import re

import numpy as np

from trainscope.core.metrics import tokens
from trainscope.core.run import IntArray, Note
from trainscope.readers import cells
from trainscope.readers.axis import STEP_NAMES, plain_name
from trainscope.readers.notes import counted, quoted, shown
from trainscope.readers.table import NULL, NUMBER, TEXT, Column, Table

RUN_NAMES = frozenset(
    [
        "run",
        "run_id",
        "runid",
        "run_name",
        "name",
        "experiment",
        "experiment_name",
        "exp",
        "exp_name",
        "trial",
        "trial_id",
        "trial_name",
        "seed",
        "job_id",
        "model_name",
        "version",
    ]
)
"""Columns that say which run a row belongs to, where they hold text or whole numbers."""
PHASE_NAMES = frozenset(
    [
        "phase",
        "split",
        "mode",
        "stage",
        "type",
        "dataset",
        "subset",
        "partition",
        "set",
        "kind",
        "event",
        "tag",
    ]
)
_PHASES = {
    "train": "train",
    "training": "train",
    "val": "eval",
    "valid": "eval",
    "validation": "eval",
    "eval": "eval",
    "evaluation": "eval",
    "dev": "eval",
    "test": "test",
    "testing": "test",
}
_TOTALS = frozenset(
    [
        "total_steps",
        "max_steps",
        "num_train_epochs",
        "num_epochs",
        "max_epochs",
        "total_epochs",
        "max_iters",
        "total_iters",
    ]
)
_MOST_RUNS = 1000
_INDEX = re.compile(r"(unnamed: 0|column_1|index|)", re.IGNORECASE)


def drop_summaries(table: Table) -> Table:
    """Take out the closing row that Hugging Face's Trainer adds: averages over the run, not points of it."""
    runtime = table.columns.get("train_runtime")
    if runtime is None or not runtime.has.any() or runtime.has.sum() > max(1, 0.2 * table.rows):
        return table
    rows = np.flatnonzero(runtime.has)
    last = int(rows[-1])
    keep = np.setdiff1d(np.arange(table.rows), rows)
    out = table.take(keep)
    for name, column in table.columns.items():
        if column.state[last] == NUMBER and name not in ("step", "epoch", "current_steps", "total_steps"):
            out.config[f"summary.{name}"] = float(column.value[last])
    average = out.config.get("summary.train_loss")
    said = f" (average train_loss {average:.4g})" if isinstance(average, float) else ""
    step = _step_at(table, last)
    out.notes.append(
        Note(
            "summary_row",
            f"the closing summary{said} is no point of the run and was left out",
            len(rows),
            step,
            step,
        )
    )
    out.columns = {name: column for name, column in out.columns.items() if (column.state != 0).any()}
    return out


def _step_at(table: Table, row: int) -> int | None:
    column = table.columns.get("step")
    if column is None or column.state[row] != NUMBER or not np.isfinite(column.value[row]):
        return None
    return int(column.value[row])


def drop_index(table: Table) -> Table:
    """Take out the nameless row index that spreadsheets and pandas leave in the first column."""
    first = next(iter(table.columns), None)
    if first is None or len(table.columns) < 3 or not _INDEX.fullmatch(first):
        return table
    column = table.columns[first]
    rises = np.diff(column.value)
    if not column.has.all() or len(rises) < 1 or not (rises == 1).all() or column.value[0] not in (0, 1):
        return table
    if not any(plain_name(name) in STEP_NAMES or tokens(name)[-1:] == ("epoch",) for name in table.columns):
        out = table.without([first])
        out.columns = {"step": column, **out.columns}
        return out
    return table.without([first])


def settle_text(table: Table) -> Table:
    """Turn text columns into what they mean: durations to seconds, dates to Unix time, constants to config.

    Text columns that mean nothing here are left in place for :func:`drop_text`.
    """
    columns: dict[str, Column] = {}
    config = dict(table.config)
    for name, column in table.columns.items():
        plain = plain_name(name)
        if plain in _TOTALS and _is_constant(column):
            config[name] = float(column.value[column.has][0])
        elif not _is_wordy(column):
            columns[name] = column
        elif (converted := _clock_column(column)) is not None:
            columns[name] = converted
        elif _constant_text(column, table.rows) is not None and plain not in STEP_NAMES:
            config[name] = _constant_text(column, table.rows)
        else:
            columns[name] = column
    return Table(table.rows, columns, list(table.notes), config)


def _is_constant(column: Column) -> bool:
    given = column.value[column.has]
    return bool(len(given)) and not column.text and bool((given == given[0]).all())


def _is_wordy(column: Column) -> bool:
    words = int((column.state == TEXT).sum())
    return words > 0 and words >= int(column.has.sum())


def _clock_column(column: Column) -> Column | None:
    """Return durations or dates as seconds, None if the column holds neither."""
    known: dict[str, float | None] = {}
    for convert in (cells.duration, cells.unix_time):
        sample = next(iter(column.text.values()))
        if convert(sample) is None:
            continue
        known = {what: convert(what) for what in set(column.text.values())}
        good = sum(value is not None for value in known.values())
        if good < 0.9 * len(known):
            continue
        value, state = column.value.copy(), column.state.copy()
        for row, what in column.text.items():
            seconds = known[what]
            value[row], state[row] = (np.nan, NULL) if seconds is None else (seconds, NUMBER)
        return Column(value, state)
    return None


def _constant_text(column: Column, rows: int) -> str | None:
    words = set(column.text.values())
    if len(words) == 1 and not column.has.any() and len(column.text) >= min(rows, 2):
        return next(iter(words))
    return None


def drop_text(table: Table) -> Table:
    """Leave out the columns that hold more text than numbers, with one note."""
    gone = [n for n, c in table.columns.items() if _is_wordy(c) and plain_name(n) not in STEP_NAMES]
    if not gone:
        return table
    out = table.without(gone)
    message = f"{counted(len(gone), 'column holds', 'columns hold')} no numbers: {quoted(gone)}"
    out.notes.append(Note("text_column", message, len(gone)))
    return out


def name_phases(table: Table) -> Table:
    """Split metrics that share a name between training and evaluation rows, told apart by a column.

    ``{"phase": "val", "loss": 2}`` becomes ``eval/loss``. Metrics of one phase only, and those whose name
    already says which, keep their name.
    """
    for name, column in table.columns.items():
        if plain_name(name) not in PHASE_NAMES or not column.text:
            continue
        words = {what: _PHASES.get(what.strip().lower()) for what in set(column.text.values())}
        if None in words.values() or len(column.text) < 0.9 * table.rows:
            continue
        phase = np.full(table.rows, "", dtype=object)
        for row, what in column.text.items():
            phase[row] = words[what]
        return _renamed_by(table, name, phase, set(words.values()) - {None})
    return table


def _renamed_by(table: Table, by: str, phase: np.ndarray, present: set[str | None]) -> Table:
    out = Table(table.rows, {}, list(table.notes), dict(table.config))
    split = 0
    for name, column in table.columns.items():
        sides = {p for p in present if column.has[phase == p].any()}
        marked = any(word in _PHASES for word in tokens(name))
        if name == by:
            continue
        if (
            plain_name(name) in STEP_NAMES
            or tokens(name)[-1:] == ("epoch",)
            or marked
            or not sides - {"train"}
        ):
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
        text = next(iter(groups)) if groups else ""
        parts: list[tuple[str | None, Table]] = []
        for label, rows in groups.items():
            part = rest.take(rows)
            part.config[name] = label
            parts.append((label if column.text and text else f"{name}={label}", part))
        return parts
    return [(None, table)]


def _groups(column: Column, rows: int) -> dict[str, IntArray] | None:
    """Return the rows of each run, None if the column cannot be what tells runs apart."""
    if column.text:
        labels = [column.text.get(row, "") for row in range(rows)]
        if column.has.any():
            labels = [
                what or (f"{column.value[i]:g}" if column.has[i] else "") for i, what in enumerate(labels)
            ]
    elif column.has.all() and (column.value == np.floor(column.value)).all():
        labels = [f"{value:g}" for value in column.value.tolist()]
    else:
        return None
    groups: dict[str, list[int]] = {}
    for row, label in enumerate(labels):
        groups.setdefault(label, []).append(row)
    if not 2 <= len(groups) <= min(_MOST_RUNS, rows // 2) or "" in groups:
        return None
    return {label: np.array(members) for label, members in groups.items()}
