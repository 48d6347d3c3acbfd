"""Free text: what a training printed, read by finding the lines that recur with other numbers.

Recognised by   lines that recur with other numbers, and the name of a metric before one of them
Keeps           every named number of such lines; training and evaluation apart; the step as far as it is counted
Drops           everything else: prose, source code, configurations, tracebacks; running means in brackets
Quirks          colours and progress bars are undone; several lines can make up one record; a log that counts nothing
                is judged by the order of its lines. What was taken for what is a note
Reference       how it works: :mod:`trainscope.readers.text_kinds`, :mod:`trainscope.readers.text_fields`,
                :mod:`trainscope.readers.text_steps`
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from trainscope.core.errors import NoDataError, NoReaderError, ReadError
from trainscope.core.metrics import Kind, canonical_names, kind
from trainscope.core.run import FloatArray, Note, Run
from trainscope.readers import csv_flavour, json_document, jsonl
from trainscope.readers.assemble import Shape, runs_of
from trainscope.readers.notes import counted, quoted
from trainscope.readers.source import Head, Source
from trainscope.readers.table import ABSENT, NUMBER, Column, Table, check_size
from trainscope.readers.text_counters import joined
from trainscope.readers.text_groups import LineKind
from trainscope.readers.text_kinds import metric_kinds
from trainscope.readers.text_large import UnusualTextError, is_large, lines_of_large
from trainscope.readers.text_lines import Lines, lines_of
from trainscope.readers.text_means import keep_epoch_means, keep_last_of_evaluations
from trainscope.readers.text_names import named
from trainscope.readers.text_records import Records, records_of
from trainscope.readers.text_steps import Steps, describe, steps_of, whole
from trainscope.readers.text_values import is_unreadable
from trainscope.readers.text_words import is_known

NAME = "text"
DESCRIPTION = "what a training printed: any text with recurring lines of metrics"

NOTHING = "no metric lines found"
_NO_LOGS = (
    ".py",
    ".md",
    ".rst",
    ".ipynb",
    ".html",
    ".htm",
    ".xml",
    ".yaml",
    ".yml",
    ".toml",
    ".cfg",
    ".ini",
    ".c",
    ".cc",
    ".cpp",
    ".h",
    ".js",
    ".ts",
    ".java",
    ".rs",
    ".go",
    ".lua",
    ".sh",
    ".tex",
    ".json",
)
"""Ends of names of files that may quote a log, and are none."""
_OUTPUTS = (".log", ".out", ".txt", ".err")
_FEW, _SHARE = 20, 0.02
"""Fewer lines of metrics than this, and less than this share of the text: somebody quotes a log."""


def sniff(head: Head) -> bool:
    """Tell whether the first lines, or those that the head shows, hold metrics."""
    if head.folder is not None or not head.text.strip() or head.name.endswith(_NO_LOGS):
        return False
    if jsonl.sniff(head) or json_document.sniff(head) or csv_flavour.of(head) is not None:
        return False  # regular to the point of having a reader of its own
    return _holds(head.text.encode("utf-8", "replace"))


def may_begin(head: Head) -> bool:
    """Tell whether lines of metrics may still come in a text that has none: it is the output of a program."""
    return bool(head.text.strip()) and head.name.endswith(_OUTPUTS)


def holds_metrics(source: Source) -> bool:
    """Tell whether a text holds lines of metrics anywhere: a log may begin with the source code of its program."""
    if source.is_folder or source.head.name.endswith(_NO_LOGS) or not source.head.text.strip():
        return False
    text = source.decoded()
    return not text.binary and _holds(text.data)


def _holds(data: bytes) -> bool:
    lines = lines_of(data)
    return bool(_kinds(lines)[0])


def _kinds(lines: Lines) -> tuple[list[LineKind], list[LineKind]]:
    kinds, bars = metric_kinds(lines)
    held = sum(len(k) for k in kinds)
    if held < _FEW and held < _SHARE * np.count_nonzero(lines.of >= 0):
        return [], []
    return kinds, bars


def read_runs(source: Source) -> list[Run]:
    """Return the runs in a text."""
    if is_large(source):
        with suppress(UnusualTextError):
            return runs_from(table_of(lines_of_large(source), source), source)
    text = source.decoded()
    if text.binary:
        raise ReadError(source.given, "is a binary file, not text")
    if not text.data or text.data.isspace():
        raise NoDataError(f"{source.given}: the file is empty")
    table = table_of(lines_of(text.data), source)
    table.notes[:0] = text.notes
    return runs_from(table, source)


def runs_from(table: Table, source: Source) -> list[Run]:
    """Return the runs in rows already parsed."""
    return runs_of(table, source, Shape(NAME, splits=False))


def table_of(lines: Lines, source: Source) -> Table:
    """Return the metrics of a text, a row a record.

    Raises
    ------
    NoReaderError
        If it holds no lines of metrics.
    """
    kinds, bars = _kinds(lines)
    if not kinds:
        raise NoReaderError(source.given, f"{NOTHING}: no line recurs with numbers under the name of a metric")
    kinds = named(kinds, lines)
    records = records_of(kinds, lines)
    steps = steps_of(kinds, bars, records)
    columns, dropped = _columns(kinds, records)
    kinds, bars = [k.without_values() for k in kinds], []  # the columns have them now
    check_size(source.given, len(columns), records.count)
    if steps.turn is not None:
        columns, means = keep_epoch_means(columns, steps.turn)
        dropped += means
    if steps.kind != "row":
        columns, evaluations = keep_last_of_evaluations(columns, steps.value, steps.training)
        dropped += evaluations
    if steps.kind == "row" and steps.epoch is None:
        axis = {}
    else:
        axis = {steps.kind: Column(whole(steps.value).astype(np.float64), np.full(records.count, NUMBER, np.uint8))}
    if steps.epoch is not None and "epoch" not in axis:
        axis["epoch"] = _column(steps.epoch)
    columns = {name: column for name, column in columns.items() if name not in axis}
    table = Table(records.count, {**axis, **columns})
    table.notes += [_said(kinds, lines, steps, columns), *steps.notes, *dropped]
    if lines.overlong:
        table.notes.append(Note("long_line", f"{counted(lines.overlong, 'line is', 'lines are')} too long for metrics"))
    return table


def _said(kinds: list[LineKind], lines: Lines, steps: Steps, columns: dict[str, Column]) -> Note:
    taken = canonical_names(list(columns), {n: int(c.has.sum()) for n, c in columns.items()})
    names = [(new, old) for old, new in taken.items() if new != old and new != "epoch"]
    return describe(steps, len(lines.of), sum(len(k) for k in kinds), names)


def _columns(kinds: list[LineKind], records: Records) -> tuple[dict[str, Column], list[Note]]:
    places: dict[str, list[tuple[int, int]]] = {}
    for number, k in enumerate(kinds):
        for i in k.metrics():
            if k.column[i]:
                places.setdefault(k.column[i], []).append((number, i))
    columns: dict[str, Column] = {}
    constant: list[str] = []
    unreadable: dict[str, int] = {}
    for name, where in places.items():
        state = np.full(records.count, ABSENT, np.uint8)
        for number, _ in where:
            state[records.of[number]] = NUMBER
        value = joined(where, kinds, records)
        odd = is_unreadable(value)
        if odd.any():
            value, state[odd] = np.where(odd, np.nan, value), ABSENT
            unreadable[name] = int(odd.sum())
        if (state == NUMBER).any():
            columns[name] = Column(value, state)
    for name, column in list(columns.items()):
        value = column.value[column.has]
        if not is_known(name) and kind(name) in (Kind.OTHER, Kind.PROGRESS) and (value == value[0]).all():
            constant.append(name)
            del columns[name]
    notes = []
    if unreadable:
        count = sum(unreadable.values())
        message = f"{counted(count, 'value', 'values')} of {quoted(list(unreadable))} only look like numbers"
        notes.append(Note("bad_cell", f"{message} (1.2.3, 1,2,3) and were left out", count))
    if constant:
        message = f"{counted(len(constant), 'number', 'numbers')} that never changed: {quoted(constant)}"
        notes.append(Note("constant", message, len(constant)))
    return columns, notes


def _column(value: FloatArray) -> Column:
    return Column(value, np.where(np.isfinite(value), NUMBER, ABSENT).astype(np.uint8))
