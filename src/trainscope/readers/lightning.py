"""PyTorch Lightning's ``CSVLogger``: ``metrics.csv``.

Recognised by   columns ``epoch`` and ``step``, in a file called ``metrics.csv`` or with ``x_step`` and
                ``x_epoch`` twins
Keeps           every metric; of two twins the one with more points takes the canonical name
Drops           nothing beyond what :mod:`trainscope.readers.csv_log` drops
Quirks          training and validation stand on rows of their own, so most cells are blank
Reference       https://lightning.ai/docs/pytorch/stable/api/lightning.pytorch.loggers.csv_logs.html
"""

from __future__ import annotations

from trainscope.core.run import Run
from trainscope.readers import csv_flavour
from trainscope.readers.assemble import Shape, runs_of
from trainscope.readers.csv_flavour import Flavour
from trainscope.readers.csv_log import read_table
from trainscope.readers.source import Head, Source
from trainscope.readers.table import Table

NAME = "lightning"
DESCRIPTION = "PyTorch Lightning CSVLogger: metrics.csv"


def sniff(head: Head) -> bool:
    """Tell whether the columns are Lightning's."""
    return csv_flavour.of(head) is Flavour.LIGHTNING


def read_runs(source: Source) -> list[Run]:
    """Return the run of a ``metrics.csv``."""
    return runs_from(read_table(source), source)


def runs_from(table: Table, source: Source) -> list[Run]:
    """Return the run in rows already parsed."""
    return runs_of(table, source, Shape(NAME, step="step", splits=False))
