"""Delimited bytes to a table: Arrow's parser where the rows are regular, else a tolerant one."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from trainscope.core.run import Note
from trainscope.readers.arrow_columns import column_of
from trainscope.readers.csv_layout import Layout
from trainscope.readers.notes import counted
from trainscope.readers.table import NULL, Table, from_strings

if TYPE_CHECKING:
    import pyarrow.csv as pacsv

ARROW_FROM = 1 << 22
"""Bytes. The tolerant parser is done with less before Arrow is imported (0.3 s)."""
_MOST_ODD = 10_000
_BAD_COLUMN = re.compile(r"In CSV column #(\d+)")


def parse_rows(data: bytes, layout: Layout, *, final: bool = True) -> Table:
    """Return the table of the rows in `data`.

    Parameters
    ----------
    data : bytes
        UTF-8, from the first row of data on (no header).
    layout : Layout
        How to read it.
    final : bool
        Whether the file ends here, so that a short last row is a cut one.
    """
    table = _parse_with_arrow(data, layout, final) if len(data) >= ARROW_FROM and layout.delimiter != " " else None
    if table is None:
        table = _parse_tolerantly(data, layout, final)
    return _without_headers(table)


def after_lines(data: bytes, count: int) -> bytes:
    """Return `data` without its first `count` lines."""
    start = 0
    for _ in range(count):
        end = data.find(b"\n", start)
        if end < 0:
            return b""
        start = end + 1
    return data[start:]


def _parse_with_arrow(data: bytes, layout: Layout, final: bool) -> Table | None:
    import pyarrow as pa
    import pyarrow.csv as pacsv

    names = list(layout.names)
    wordy = set(layout.text_columns)
    for _ in range(len(names) + 1):
        odd = _OddRows(data, final)
        kinds = {n: pa.string() if i in wordy else pa.float64() for i, n in enumerate(names)}
        options = pacsv.ConvertOptions(
            column_types=kinds,
            null_values=["", "None", "null"],
            strings_can_be_null=True,
            decimal_point=layout.decimal,
        )
        try:
            found = pacsv.read_csv(
                pa.BufferReader(data),
                read_options=pacsv.ReadOptions(column_names=names),
                parse_options=pacsv.ParseOptions(delimiter=layout.delimiter, invalid_row_handler=odd.skip),
                convert_options=options,
            )
        except pa.ArrowInvalid as error:
            column = _BAD_COLUMN.search(str(error))
            if column is None or int(column[1]) in wordy:
                return None
            wordy.add(int(column[1]))
            continue
        if odd.beyond or odd.count > 0.05 * found.num_rows:
            return None
        columns = {n: column_of(found[n], missing=NULL, decimal=layout.decimal) for n in names}
        table = Table(found.num_rows, {n: c for n, c in columns.items() if c is not None})
        table.notes.extend(_row_notes(odd.count, odd.cut))
        return table
    return None


class _OddRows:
    """Rows of another width, as Arrow's parser meets them; `beyond` where only the tolerant one can tell."""

    def __init__(self, data: bytes, final: bool) -> None:
        end = data.rfind(b"\n") + 1
        self._last = data[end:].decode("utf-8", "replace").strip() if final else ""
        self.count = 0
        self.cut = False
        self.beyond = False

    def skip(self, row: pacsv.InvalidRow) -> str:
        """Handle one row."""
        if self._last and row.text.strip() == self._last and row.actual_columns < row.expected_columns:
            self.cut = True
        else:
            self.count += 1
            # Quotes may hold a line break, and blanks at the end do no harm.
            tail = row.text.rstrip().rstrip(",;\t|")
            self.beyond |= '"' in row.text or tail != row.text.rstrip() or self.count > _MOST_ODD
        return "error" if self.beyond else "skip"


def _row_notes(odd: int, cut: bool) -> list[Note]:
    notes = []
    if odd:
        rows_have = counted(odd, "row has", "rows have")
        message = f"{rows_have} another number of cells than the header; left out"
        notes.append(Note("malformed_line", message, odd))
    if cut:
        notes.append(Note("truncated", "the last row is cut off and was left out"))
    return notes


@dataclass(slots=True)
class _Rows:
    """What the tolerant parser keeps and drops."""

    kept: list[Sequence[str | None]] = field(default_factory=list)
    odd: int = 0
    cut: bool = False


def _parse_tolerantly(data: bytes, layout: Layout, final: bool) -> Table:
    width = len(layout.names)
    rows = _Rows()
    parsed = [row for row in _csv_rows(data, layout.delimiter) if any(map(str.strip, row))]
    short = [row for row in parsed if len(row) < width]
    usual = len(short) > 0.5 * len(parsed)  # rows whose trailing blanks are left out, not damage
    for number, row in enumerate(parsed):
        last = number == len(parsed) - 1
        if len(row) > width and any(map(str.strip, row[width:])):
            rows.odd += 1
        elif len(row) >= width:
            rows.kept.append(row[:width])
        elif last and final and not data.endswith(b"\n"):
            rows.cut = True
        elif usual or row[0].startswith("#"):
            if not row[0].startswith("#"):
                rows.kept.append([*row, *[None] * (width - len(row))])
        else:
            rows.odd += 1
    columns = zip(*rows.kept, strict=True) if rows.kept else [()] * width
    table = Table(
        len(rows.kept),
        {n: from_strings(c, decimal=layout.decimal) for n, c in zip(layout.names, columns, strict=True)},
    )
    table.notes.extend(_row_notes(rows.odd, rows.cut))
    return table


def _csv_rows(data: bytes, delimiter: str) -> Iterator[list[str]]:
    text = io.StringIO(data.decode("utf-8", "replace"), newline="")
    if delimiter == " ":
        yield from (line.split() for line in text)
        return
    reader = csv.reader(text, delimiter=delimiter, skipinitialspace=True)
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error:
            continue  # a field beyond csv.field_size_limit: a row of garbage


def _without_headers(table: Table) -> Table:
    """Drop rows that repeat the header, as appended files have them at each launch."""
    repeats = [
        {row for row, what in column.text.items() if what.strip() == name}
        for name, column in table.columns.items()
        if column.text
    ]
    if len(repeats) < len(table.columns):
        return table
    rows = set.intersection(*repeats) if repeats else set()
    if not rows:
        return table
    keep = np.setdiff1d(np.arange(table.rows), np.fromiter(rows, np.int64))
    out = table.take(keep)
    out.notes.append(Note("repeated_header", "the header is repeated between rows", len(rows)))
    return out
