"""Weights & Biases chart export: one column per run.

Recognised by   headers ``<run> - <metric>`` with ``__MIN`` and ``__MAX`` twins
Keeps           one run for each ``<run>``, its metric under its canonical name
Drops           the twins (the range of what W&B averaged into one point), counted in a note
Quirks          cells are blank where the runs were logged at different steps
Reference       https://docs.wandb.ai/guides/app/features/panels/line-plot/
"""

from __future__ import annotations

import numpy as np

from trainscope.core.errors import NoDataError
from trainscope.core.run import Note, Run
from trainscope.readers import csv_flavour
from trainscope.readers.assemble import Shape, runs_of_part
from trainscope.readers.csv_flavour import CHART_MARK, Flavour
from trainscope.readers.csv_log import read_table
from trainscope.readers.source import Head, Source
from trainscope.readers.table import ABSENT, NULL, Column, Table

NAME = "wandb_chart"
DESCRIPTION = "Weights & Biases: chart export, one column per run (CSV)"


def sniff(head: Head) -> bool:
    """Tell whether the columns have the twins of a chart export."""
    return csv_flavour.of(head) is Flavour.WANDB_CHART


def read_runs(source: Source) -> list[Run]:
    """Return the runs of a chart export, in the order of its columns."""
    table = read_table(source)
    twins = [name for name in table.columns if name.endswith(("__MIN", "__MAX"))]
    table = table.without(twins)
    shared = {name: column for name, column in table.columns.items() if CHART_MARK not in name}
    by_run: dict[str, dict[str, str]] = {}
    for name in table.columns:
        if name not in shared:
            run, _, metric = name.rpartition(CHART_MARK)
            by_run.setdefault(run, {})[metric] = name
    if not by_run:
        by_run = {source.name: {}}
    if twins:
        said = f"{len(twins)} columns of minima and maxima were left out"
        table.notes.append(Note("twin_columns", said, len(twins)))
    runs = []
    for run, metrics in by_run.items():
        columns = {**shared, **{metric: _not_blank(table.columns[name]) for metric, name in metrics.items()}}
        part = Table(table.rows, columns, list(table.notes), dict(table.config))
        runs += runs_of_part(part, source, Shape(NAME), run)
    if not runs:
        raise NoDataError(f"{source.given}: no metric in it: no row holds a number to judge")
    return runs


def _not_blank(column: Column) -> Column:
    """Return the column with its blanks absent: they are steps of the other runs, never a NaN."""
    state = np.where(column.state == NULL, ABSENT, column.state).astype(np.uint8)
    return Column(column.value, state, column.text)
