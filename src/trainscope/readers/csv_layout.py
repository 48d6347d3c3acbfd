"""How a delimited text file is laid out (delimiter, decimal mark, comments, header), by its first lines."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, pairwise

from trainscope.core.run import Note, Scalar
from trainscope.readers import cells
from trainscope.readers.source import Head

DELIMITERS = (",", "\t", ";", "|")
_SAMPLE = 60
_FEWEST_ALIGNED = 3
"""Lines of equally many words, all numbers but those of the first, that no prose has."""
_SEP = re.compile(r"sep=(.)", re.IGNORECASE)
_CUT_NUMBER = re.compile(r"[^\W\d_][\w ./%()-]{0,60}[:=]\s*[-+]?\d[\d.]*,[-+]?\d")
"""A number under a name with a comma within: of a sentence (``loss: 0,25``), and no place to cut it."""
_COMMA_NUMBER = re.compile(r"[-+]?\d*,\d+(?:e[-+]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Layout:
    """What it takes to parse the file."""

    delimiter: str
    decimal: str
    names: tuple[str, ...]
    """Distinct column names, as in the header without padding."""
    skip: int
    """Lines before the first row of data: comments, ``sep=``, blank lines, the header."""
    text_columns: frozenset[int] = frozenset()
    """Columns with text among the first rows."""
    header: str | None = None
    """The header line, to recognise its repetitions; None where the file has none."""
    notes: tuple[Note, ...] = ()
    config: Mapping[str, Scalar] = field(default_factory=dict)
    """From ``#{json}`` comment lines."""


def split(line: str, delimiter: str) -> list[str]:
    """Return the cells of one line, without padding."""
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]
    except csv.Error:
        return []


@lru_cache(maxsize=1)
def find_layout(head: Head) -> Layout | None:
    """Return the layout of a delimited file, None if it is none; every reader of tables asks for the same."""
    lines = head.text.splitlines()
    if not head.whole and len(lines) > 1 and not head.text.endswith(("\n", "\r")):
        lines.pop()
    skip, delimiter, comments = _preamble(lines)
    more = _broken_header(lines[skip : skip + _SAMPLE])
    if more:
        lines[skip : skip + more + 1] = ["\n".join(lines[skip : skip + more + 1])]
    body = [line for line in islice(lines, skip, skip + _SAMPLE) if line.strip()]
    if not body or body[0].lstrip().startswith(("{", "[", "<")):
        return None
    found = _best_delimiter(body, delimiter)
    if found is None:
        return _single_column(head, body, skip + more) or _aligned(body, skip + more, comments)
    by_name = head.name.endswith((".csv", ".tsv"))
    if found == "," and not by_name and all(_CUT_NUMBER.search(line[:1000]) for line in body):
        return None
    rows = [split(line, found) for line in body]
    return _layout(found, rows, body, skip + more, comments, by_name=by_name)


def _broken_header(lines: Sequence[str]) -> int:
    """Return how many lines after the first belong to the header: those that its quotes reach over."""
    quotes = 0
    for number, line in enumerate(lines):
        quotes += line.count('"')
        if quotes % 2 == 0:
            return number
    return 0


def _preamble(lines: Sequence[str]) -> tuple[int, str | None, list[str]]:
    """Return how many lines to skip, the delimiter that a ``sep=`` line names, and the comment lines."""
    comments: list[str] = []
    delimiter = None
    for number, line in enumerate(lines):
        text = line.strip()
        named = _SEP.fullmatch(text)
        if named is not None:
            delimiter = named[1]
        elif text.startswith("#"):
            comments.append(text[1:].strip())
        elif text:
            return number, delimiter, comments
    return len(lines), delimiter, comments


def _best_delimiter(body: Sequence[str], named: str | None) -> str | None:
    best, best_score = None, (0.0, 0)
    for delimiter in (named,) if named else DELIMITERS:
        if delimiter == "|" and body[0].lstrip().startswith("|"):
            continue
        widths = [len(split(line, delimiter)) for line in body]
        if widths[0] < 2:
            continue
        alike = sum(abs(width - widths[0]) <= 1 for width in widths) / len(widths)
        score = (round(alike, 1), widths[0])
        if alike >= 0.6 and score > best_score:
            best, best_score = delimiter, score
    return best


def _aligned(body: Sequence[str], skip: int, comments: list[str]) -> Layout | None:
    """Return the layout of columns that spaces keep apart: numbers alone, under names without a space."""
    rows = [line.split() for line in body]
    width = len(rows[0])
    if width < 2 or len(rows) < _FEWEST_ALIGNED or any(len(row) != width for row in rows):
        return None
    if any(cells.number(cell) is None and not cells.is_blank(cell) for row in rows[1:] for cell in row):
        return None
    return _layout(" ", rows, body, skip, comments, by_name=False)


def _single_column(head: Head, body: Sequence[str], skip: int) -> Layout | None:
    if not head.name.endswith((".csv", ".tsv")) or len(body) < 2 or cells.number(body[0]) is not None:
        return None
    if any(cells.number(line) is None and not cells.is_blank(line) for line in body[1:]):
        return None
    return Layout(",", ".", (body[0].strip().strip('"'),), skip + 1, header=body[0])


def _layout(
    delimiter: str,
    rows: list[list[str]],
    body: Sequence[str],
    skip: int,
    comments: list[str],
    *,
    by_name: bool,
) -> Layout | None:
    decimal = _decimal(delimiter, rows)
    config, titled = _read_comments(comments, delimiter, len(rows[0]))
    bare = all(cells.number(c, decimal=decimal) is not None or cells.is_blank(c) for c in rows[0])
    notes: list[Note] = []
    if not bare:
        names, data, header = rows[0], rows[1:], body[0]
        skip += 1
    elif titled:
        names, data, header = titled, rows, None
    else:
        names, data, header = _nameless(rows, decimal), rows, None
        notes.append(Note("no_header", f"the file has no header; its {len(names)} columns were numbered"))
    if not _plausible(data, decimal, by_name=by_name):
        return None
    distinct, renamed = _distinct(_fit(names, data))
    if renamed:
        notes.append(renamed)
    text = frozenset(
        i
        for i in range(len(distinct))
        if any(i < len(r) and r[i] and cells.number(r[i], decimal=decimal) is None for r in data)
    )
    return Layout(delimiter, decimal, distinct, skip, text, header, tuple(notes), config)


def _decimal(delimiter: str, rows: Sequence[Sequence[str]]) -> str:
    if delimiter == ",":
        return "."
    flat = [cell for row in rows for cell in row]
    commas = sum(_COMMA_NUMBER.fullmatch(cell) is not None for cell in flat)
    points = sum("." in cell and "," not in cell and cells.number(cell) is not None for cell in flat)
    return "," if commas > points else "."


def _read_comments(comments: Sequence[str], delimiter: str, width: int) -> tuple[dict[str, Scalar], list[str] | None]:
    """Return what ``#{json}`` comments hold, and the header if the last comment is one."""
    config: dict[str, Scalar] = {}
    for comment in comments:
        if comment.startswith("{"):
            try:
                found = json.loads(comment)
            except (ValueError, RecursionError):
                continue
            config.update({k: v for k, v in found.items() if isinstance(v, (str, int, float, bool))})
    last = split(comments[-1], delimiter) if comments else []
    return config, last if len(last) == width and not any(map(str.isdigit, last)) else None


def _nameless(rows: Sequence[Sequence[str]], decimal: str) -> list[str]:
    """Name the columns of a file without a header; a first column that counts upwards is the step."""
    names = [f"column_{i + 1}" for i in range(len(rows[0]))]
    first = [cells.number(row[0], decimal=decimal) for row in rows if row]
    whole = [value for value in first if value is not None and value == value and float(value).is_integer()]
    rises = sum(b > a for a, b in pairwise(whole))
    if len(whole) == len(first) > 2 and rises >= 0.8 * (len(first) - 1):
        names[0] = "step"
    return names


def _plausible(data: Sequence[Sequence[str]], decimal: str, *, by_name: bool) -> bool:
    """Tell prose with commas from a table: most cells of a table are numbers or blank."""
    if not data:
        return by_name
    flat = [cell for row in data for cell in row]
    good = sum(cells.is_blank(cell) or cells.number(cell, decimal=decimal) is not None for cell in flat)
    return good >= (0.2 if by_name else 0.5) * len(flat) and len(flat) > 0


def _fit(names: list[str], data: Sequence[Sequence[str]]) -> list[str]:
    """Adjust the header to rows that are one cell longer: a nameless index, or a delimiter at the end."""
    if data and all(len(row) == len(names) + 1 for row in data):
        return [*names, ""] if not any(row[-1] for row in data) else ["", *names]
    return names


def _distinct(names: Sequence[str]) -> tuple[tuple[str, ...], Note | None]:
    counts = Counter(names)
    out: dict[str, None] = {}
    twice = [name for name in counts if counts[name] > 1 and name]
    tried: dict[str, int] = {}
    for i, name in enumerate(names):
        candidate, n = name or f"column_{i + 1}", tried.get(name, 1)
        while candidate in out:
            n += 1
            candidate = f"{name or 'column'}_{n}"
        out[candidate] = None
        tried[name] = n
    if not twice:
        return tuple(out), None
    shown = ", ".join(repr(name[:40]) for name in twice[:3])
    return tuple(out), Note("renamed", f"column names stand twice in the header and were numbered: {shown}", len(twice))
