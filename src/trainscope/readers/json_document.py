"""One JSON document: an array of objects, or an object of equally long arrays; or objects over several lines each.

Recognised by   ``[{...}, ...]``, or ``{"loss": [...], "val_loss": [...]}`` as Keras' ``History.history``, or
                one object after the other, written over several lines
Keeps           what :mod:`trainscope.readers.jsonl` keeps
Drops           elements that are no objects, with a note
Quirks          a cut array is read up to the cut, with a note
Reference       https://www.rfc-editor.org/rfc/rfc8259
"""

from __future__ import annotations

import json
import re
from typing import Any

from trainscope.core.errors import NoDataError, ReadError
from trainscope.core.run import Note, Run
from trainscope.readers.assemble import Shape, runs_of
from trainscope.readers.notes import counted
from trainscope.readers.records import RecordTable
from trainscope.readers.source import Head, Source
from trainscope.readers.table import Table, check_size, from_objects

NAME = "json"
DESCRIPTION = "one JSON document: an array of objects, or arrays by name (Keras history)"

_ARRAY_OF_OBJECTS = re.compile(r"\s*\[\s*\{")
_ARRAYS_BY_NAME = re.compile(r'\s*\{\s*"[^"]*"\s*:\s*\[\s*(?:[-+\d]|NaN|Infinity|null|"[-+\d])')
_DECODER = json.JSONDecoder()


def sniff(head: Head) -> bool:
    """Tell whether the text starts like one of the two shapes."""
    if _ARRAY_OF_OBJECTS.match(head.text):
        return not _is_line_array(head)
    if _follows_another(head.text):
        return '"log_history"' not in head.text
    return bool(_ARRAYS_BY_NAME.match(head.text)) and '"log_history"' not in head.text


def _follows_another(text: str) -> bool:
    """Tell whether the first object is followed by another one: what ``json.dump(row, file, indent=2)`` appends."""
    start = len(text) - len(text.lstrip())
    if text[start : start + 1] != "{":
        return False
    try:
        _, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return False
    gap = len(text) - len(text[end:].lstrip(", \t\r\n"))
    one_a_line = "\n" not in text[start:end] and "\n" in text[end:gap]
    return text[gap : gap + 1] == "{" and not one_a_line


def _is_line_array(head: Head) -> bool:
    """Several lines, each an array of its own, are not one document."""
    lines = head.lines()[:3]
    return len(lines) > 1 and all(line.strip()[:1] == "[" and line.strip()[-1:] == "]" for line in lines)


def read_runs(source: Source) -> list[Run]:
    """Return the runs in a JSON document."""
    decoded = source.decoded()
    if decoded.binary:
        raise ReadError(source.given, "is a binary file, not JSON")
    text = decoded.data.decode("utf-8", "replace").strip()
    if not text:
        raise NoDataError(f"{source.given}: the file is empty")
    table = _table(text, source)
    table.notes[:0] = decoded.notes
    return runs_of(table, source, Shape(NAME))


def _table(text: str, source: Source) -> Table:
    try:
        found = json.loads(text)
    except RecursionError:
        raise ReadError(source.given, "is nested too deeply to be a log") from None
    except ValueError as error:
        records, closed = objects_in_array(text, 1 if text.startswith("[") else 0)
        if records and (text.startswith("[") or len(records) > 1):
            return _of_records(records, [] if closed else [cut_note(len(records))], source)
        raise ReadError(source.given, f"is not valid JSON ({error})") from None
    if isinstance(found, list):
        return _of_records(found, [], source)
    if isinstance(found, dict) and found:
        return _of_arrays(found, source)
    raise ReadError(source.given, "is neither an array of objects nor an object of arrays")


def _of_records(found: list[Any], notes: list[Note], source: Source) -> Table:
    records = [one for one in found if isinstance(one, dict)]
    collected = RecordTable(source.given)
    collected.add(records)
    table = collected.table()
    table.notes.extend(notes)
    other = len(found) - len(records)
    if other:
        said = f"{counted(other, 'element is no object and was', 'elements are no objects and were')} left out"
        table.notes.append(Note("malformed_line", said, other))
    return table


def _of_arrays(found: dict[str, Any], source: Source) -> Table:
    arrays = {name: value for name, value in found.items() if isinstance(value, list) and value}
    check_size(source.given, len(arrays))
    rows = max(map(len, arrays.values()), default=0)
    full = {name: value for name, value in arrays.items() if len(value) == rows}
    if not full:
        raise ReadError(source.given, "holds no arrays of numbers, so it is no log")
    table = Table(rows, {name: from_objects(value) for name, value in full.items()})
    short = [name for name in arrays if name not in full]
    if short:
        said = f"{counted(len(short), 'array is', 'arrays are')} shorter than the others and left out"
        table.notes.append(Note("text_column", said, len(short)))
    table.config.update(
        {k: v for k, v in found.items() if isinstance(v, (str, int, float, bool)) and k not in table.columns}
    )
    return table


def objects_in_array(text: str, start: int) -> tuple[list[dict[str, Any]], bool]:
    """Return the complete objects that stand one after the other from `start` on, and whether nothing is missing.

    An array must be closed (``start`` is after its bracket); a plain sequence ends with the text.
    """
    records: list[dict[str, Any]] = []
    position = start
    separator = re.compile(r"[\s,]*")
    while True:
        match = separator.match(text, position)
        position = match.end() if match else position
        if position >= len(text) or text[position] != "{":
            ends = text[position : position + 1]
            return records, ends == "]" or (start == 0 and not ends)
        try:
            found, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return records, False
        records.append(found)


def cut_note(kept: int) -> Note:
    """Return the note of a document that ends early."""
    return Note("truncated", f"the file is cut off; its first {kept} complete entries were read", 1)
