"""Delimited text: comma, semicolon, tab or bar, or columns apart by spaces; with or without a header, any suffix.

Recognised by   lines that split into the same number of cells, most of them numbers
Keeps           every column with numbers; ``#{json}`` comments as configuration
Drops           text cells in number columns, cut and overlong rows, repeated headers: each with a note
Quirks          decimal comma beside semicolons; padded headers (Ultralytics); nameless index columns (pandas)
Reference       https://www.rfc-editor.org/rfc/rfc4180
"""

from __future__ import annotations

from trainscope.core.errors import NoDataError, ReadError
from trainscope.core.run import Run
from trainscope.readers import csv_flavour
from trainscope.readers.assemble import Shape, runs_of
from trainscope.readers.csv_flavour import Flavour
from trainscope.readers.csv_layout import find_layout
from trainscope.readers.csv_rows import after_lines, parse_rows
from trainscope.readers.source import Head, Source
from trainscope.readers.table import Table, check_size

NAME = "csv"
DESCRIPTION = "CSV, TSV and the like (also Keras, SB3, AlgoPerf, Ultralytics)"


def sniff(head: Head) -> bool:
    """Tell whether the text is a table that no other reader knows by its columns."""
    return csv_flavour.of(head) is Flavour.PLAIN


def read_runs(source: Source) -> list[Run]:
    """Return the runs in a delimited text file."""
    return runs_from(read_table(source), source)


def runs_from(table: Table, source: Source) -> list[Run]:
    """Return the runs in rows already parsed."""
    return runs_of(_monitored(table), source, Shape(NAME))


def _monitored(table: Table) -> Table:
    """Spell out the columns of Stable-Baselines' ``monitor.csv``: return, length and time of an episode."""
    if not {"r", "l", "t"} <= set(table.columns) or "t_start" not in table.config:
        return table
    out = table.without(())
    long = {"r": "episode_reward", "l": "episode_length"}
    out.columns = {long.get(name, name): column for name, column in table.columns.items()}
    return out


def read_table(source: Source) -> Table:
    """Return the rows of a delimited text file.

    Raises
    ------
    ReadError
        If it is no table.
    NoDataError
        If it has no rows.
    """
    text = source.decoded()
    if text.binary:
        raise ReadError(source.given, "is a binary file, not delimited text")
    if not text.data.strip():
        raise NoDataError(f"{source.given}: the file is empty")
    layout = find_layout(source.head)
    if layout is None:
        raise ReadError(source.given, "is no table: its lines do not split into columns of numbers")
    check_size(source.given, len(layout.names), text.data.count(b"\n"))
    table = parse_rows(after_lines(text.data, layout.skip), layout)
    table.notes[:0] = [*text.notes, *layout.notes]
    table.config.update(layout.config)
    if not table.rows:
        raise NoDataError(f"{source.given}: a header and no rows")
    return table
