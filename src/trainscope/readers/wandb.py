"""Weights & Biases history export: ``run.history()`` or "Export as CSV" of one run.

Recognised by   the columns ``_step`` and ``_runtime`` or ``_timestamp``
Keeps           every metric
Drops           nothing beyond what :mod:`trainscope.readers.csv_log` drops
Quirks          ``_step`` counts calls of ``wandb.log``; the trainer's own step counter is preferred where at
                least nine in ten rows have it. A table of runs (one row per run) is refused
Reference       https://docs.wandb.ai/ref/python/public-api/run/
"""

from __future__ import annotations

import numpy as np

from trainscope.core.errors import ReadError
from trainscope.core.run import Run
from trainscope.readers import csv_flavour
from trainscope.readers.assemble import Shape, runs_of
from trainscope.readers.csv_flavour import Flavour
from trainscope.readers.csv_log import read_table
from trainscope.readers.source import Head, Source
from trainscope.readers.table import Table
from trainscope.readers.vocabulary import STEP_NAMES, plain_name

NAME = "wandb"
DESCRIPTION = "Weights & Biases: history export of one run (CSV)"


def sniff(head: Head) -> bool:
    """Tell whether the columns are those of a history or of a table of runs."""
    return csv_flavour.of(head) in (Flavour.WANDB_HISTORY, Flavour.WANDB_RUNS)


def read_runs(source: Source) -> list[Run]:
    """Return the run of a history export."""
    if csv_flavour.of(source.head) is Flavour.WANDB_RUNS:
        raise ReadError(
            source.given,
            "is a W&B table of runs (one row per run), not a history; export the history of one run",
        )
    return runs_from(read_table(source), source)


def runs_from(table: Table, source: Source) -> list[Run]:
    """Return the run in rows already parsed."""
    return runs_of(table, source, Shape(NAME, step=_step_column(table)))


def _step_column(table: Table) -> str | None:
    """Return the trainer's own counter if nearly every row has it and it counts upwards, else ``_step``."""
    for name in table.columns:
        if plain_name(name) not in STEP_NAMES or name == "_step":
            continue
        value = table.columns[name].value
        given = value[np.isfinite(value)]
        if len(given) >= 0.9 * table.rows and len(given) > 1 and given[-1] > given[0] and (np.diff(given) >= 0).all():
            return name
    return "_step" if "_step" in table.columns else None
