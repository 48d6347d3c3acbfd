"""JSON-lines bytes to a table: Arrow's parser where the text is plain, a tolerant one where it is not.

The tolerant parser takes what Arrow refuses: NaN and Infinity tokens, nulls (which Arrow cannot tell from
missing keys), values that change type, broken and cut lines. It parses blocks of lines as one array, and
single lines only in a block that does not parse.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from trainscope.core.run import Note
from trainscope.readers.arrow_columns import column_of
from trainscope.readers.records import RecordTable
from trainscope.readers.table import MAX_COLUMNS, Column, Table, check_size
from trainscope.readers.vocabulary import CONTAINERS

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK_BYTES = 1 << 20
_SAMPLE_BYTES = 1 << 16
ARROW_FROM = 1 << 22
"""Bytes. The tolerant parser is done with less before Arrow is imported (0.3 s)."""


def parse_lines(data: bytes, given: str = "the text", *, first_line: int = 1, final: bool = True) -> Table:
    """Return the table of the JSON objects in `data`, one a line.

    Parameters
    ----------
    data : bytes
        UTF-8.
    given : str
        What the user calls the file, for the error.
    first_line : int
        Number of the first line, for notes.
    final : bool
        Whether the file ends here, so that a broken last line is a cut one.

    Raises
    ------
    ReadError
        If there are too many keys for a table.
    """
    if len(data) >= ARROW_FROM and b"null" not in data and _has_settled_keys(data):
        table = _parse_with_arrow(data)
        if table is not None:
            check_size(given, len(table.columns), table.rows)
            return table
    return _parse_tolerantly(data, given, first_line, final)


def _has_settled_keys(data: bytes) -> bool:
    """Tell whether most rows have the same keys: the time that Arrow takes grows with rows times keys."""
    known: set[str] = set()
    most = 0
    for start in (0, len(data) // 2, len(data) - _SAMPLE_BYTES):
        for line in data[start : start + _SAMPLE_BYTES].split(b"\n")[1 if start else 0 : -1]:
            value = _object(line)
            if isinstance(value, dict):
                known.update(value)
                most = max(most, len(value))
    return most <= MAX_COLUMNS and len(known) <= 4 * most + 16


def _parse_with_arrow(data: bytes) -> Table | None:
    import pyarrow as pa
    import pyarrow.json as pajson

    try:
        found = pajson.read_json(pa.BufferReader(data), read_options=pajson.ReadOptions(block_size=4 * _BLOCK_BYTES))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    columns: dict[str, Column] = {}
    for name, values in _flat(found):
        column = column_of(values)
        if column is None or name in columns:
            return None
        columns[name] = column
    return Table(found.num_rows, columns)


def _flat(table: pa.Table) -> Iterator[tuple[str, pa.ChunkedArray]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, values in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_struct(values.type):
            inside = [(f.name, pc.struct_field(values, [i])) for i, f in enumerate(values.type)]
            prefix = "" if name.lower() in CONTAINERS else f"{name}."
            nested = pa.table([v for _, v in inside], names=[prefix + n for n, _ in inside])
            yield from _flat(nested)
        else:
            yield name, values


def _parse_tolerantly(data: bytes, given: str, first_line: int, final: bool) -> Table:
    records = RecordTable(given)
    bad: list[int] = []
    lists: list[int] = []
    line = first_line
    last = first_line - 1
    for block in _blocks(data):
        lines = block.split(b"\n")
        if lines and not lines[-1]:
            lines.pop()
        found = _whole_block(lines)
        if found is None:
            found = []
            for number, text in enumerate(lines, line):
                if not text.strip():
                    continue
                value = _object(text)
                if isinstance(value, dict):
                    found.append(value)
                else:
                    (bad if value is None else lists).append(number)
                last = number
        records.add(found)
        line += len(lines)
        if any(lines):
            last = max(last, line - 1 - _trailing_blank(lines))
    table = records.table()
    if final and bad and bad[-1] == last and not data.endswith(b"\n"):
        bad.pop()
        step = _last_step(table)
        table.notes.append(Note("truncated", f"the last line ({last}) is cut off and was left out", 1, step, step))
    if bad:
        table.notes.append(_lines_note(bad, "not valid JSON"))
    if lists:
        table.notes.append(_lines_note(lists, "not JSON objects"))
    return table


def _trailing_blank(lines: Sequence[bytes]) -> int:
    count = 0
    while count < len(lines) and not lines[-1 - count].strip():
        count += 1
    return count


def _blocks(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", min(start + _BLOCK_BYTES, len(data) - 1))
        end = len(data) if end < 0 else end + 1
        yield data[start:end]
        start = end


def _whole_block(lines: Sequence[bytes]) -> list[dict[str, Any]] | None:
    """Parse the lines as one array, None if that fails or if lines and elements do not match."""
    full = [line for line in lines if line and not line.isspace()]
    try:
        found = json.loads(b"[" + b",".join(full) + b"]")
    except (ValueError, RecursionError):
        return None
    if len(found) != len(full) or set(map(type, found)) - {dict}:
        return None
    return list(found)


def _object(line: bytes) -> object:
    """Parse one line; None where it is not JSON."""
    try:
        return json.loads(line.decode("utf-8", "replace").strip())
    except (ValueError, RecursionError):
        return None


def _lines_note(lines: Sequence[int], what: str) -> Note:
    shown = ", ".join(map(str, lines[:3])) + (", ..." if len(lines) > 3 else "")
    noun = "line is" if len(lines) == 1 else "lines are"
    verb = "was" if len(lines) == 1 else "were"
    return Note("malformed_line", f"{len(lines)} {noun} {what} and {verb} left out (line {shown})", len(lines))


def _last_step(table: Table) -> int | None:
    column = table.columns.get("step")
    if column is None or not column.has.any():
        return None
    value = column.value[column.has][-1]
    return int(value) if abs(value) < 2**62 else None
