"""What rows and columns that are no metrics are for: summaries, constants, durations, dates, an index."""

from __future__ import annotations

import re

import numpy as np

from trainscope.core.metrics import tokens
from trainscope.core.run import Note
from trainscope.readers import cells
from trainscope.readers.notes import counted, quoted
from trainscope.readers.table import NULL, NUMBER, TEXT, Column, Table
from trainscope.readers.vocabulary import RUN_NAMES, STEP_NAMES, TOTAL_NAMES, plain_name

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


def fold_statistics(table: Table) -> Table:
    """Keep the mean of metrics logged as ``{"num": 64, "mean": 0.1, "std": 0.2}``, as StyleGAN does."""
    bases = [n[:-5] for n in table.columns if n.endswith(".mean")]
    folded = [b for b in bases if f"{b}.std" in table.columns and f"{b}.num" in table.columns]
    if not folded:
        return table
    gone = {f"{base}.{part}" for base in folded for part in ("num", "std")}
    renamed = {f"{base}.mean": base for base in folded if base not in table.columns}
    out = table.without(gone)
    out.columns = {renamed.get(name, name): column for name, column in out.columns.items()}
    message = f"of {counted(len(folded), 'metric', 'metrics')} the mean was kept, count and deviation left out"
    out.notes.append(Note("folded_statistics", message, len(folded)))
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
        if plain in TOTAL_NAMES | RUN_NAMES and _is_constant(column):
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
