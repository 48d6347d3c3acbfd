"""JSON lines: one object a row.

Recognised by   lines that are JSON objects, whatever the file's name
Keeps           every number, nested objects under dotted names, strings that are numbers
Drops           lines that are no JSON objects, each kind with a note; a cut last line
Quirks          NaN and Infinity tokens are read; a null is NaN where the metric's companions are present
Reference       https://jsonlines.org
"""

from __future__ import annotations

import json
import re

from trainscope.core.errors import NoDataError, ReadError
from trainscope.core.metrics import canonical, tokens
from trainscope.core.run import Run
from trainscope.readers.assemble import Shape, runs_of
from trainscope.readers.json_rows import parse_lines
from trainscope.readers.source import Head, Source
from trainscope.readers.table import Table
from trainscope.readers.vocabulary import STEP_NAMES, plain_name

NAME = "jsonl"
DESCRIPTION = "JSON lines: one object a row (also LLaMA-Factory, ms-swift, detectron2, StyleGAN)"

_SAMPLE = 40
_OPENS_OBJECT = re.compile(r'\{\s*"[^"]*"\s*:\s*(?!\s*\[)')


def sniff(head: Head) -> bool:
    """Tell whether most of the first lines are JSON objects."""
    lines = head.lines()[:_SAMPLE]
    if not lines or head.text.lstrip()[:1] == "[":
        return False
    if len(lines) > 1 and not head.text.endswith("\n") and _parsed(lines[-1]) is None:
        lines.pop()  # still being written, or cut
    objects = [found for found in map(_parsed, lines) if isinstance(found, dict)]
    if any("log_history" in found for found in objects):
        return False
    if len(lines) == 1:
        if not head.whole:
            return bool(_OPENS_OBJECT.match(lines[0].lstrip()))
        return len(objects) == 1 and _is_point(objects[0])
    return len(objects) >= 0.6 * len(lines)


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_point(found: dict[str, object]) -> bool:
    """Tell a log of one line from any other JSON object: it has a step, an epoch or a loss."""
    return any(
        plain_name(key) in STEP_NAMES or tokens(key)[-1:] == ("epoch",) or canonical(key) in ("train/loss", "eval/loss")
        for key, value in found.items()
        if not isinstance(value, (list, dict))
    )


def read_runs(source: Source) -> list[Run]:
    """Return the runs in a JSON-lines file."""
    text = source.decoded()
    if text.binary:
        raise ReadError(source.given, "is a binary file, not JSON lines")
    table = parse_lines(text.data, source.given)
    table.notes[:0] = text.notes
    if not table.rows:
        if text.data.strip():
            raise ReadError(source.given, "no line of it is a JSON object", line=1)
        raise NoDataError(f"{source.given}: the file is empty")
    return runs_from(table, source)


def runs_from(table: Table, source: Source) -> list[Run]:
    """Return the runs in rows already parsed."""
    return runs_of(table, source, Shape(NAME))
