"""Reads a log that is still being written, again and again, without parsing a line twice.

JSON lines and delimited text are read from where the last poll ended; their rows are kept as columns. A text in
which no line of metrics came yet is waited for: programs print much before they train. Other formats, free text, and
compressed or UTF-16 files are read anew whenever their size or time of change moves.
"""

from __future__ import annotations

import os
from pathlib import Path

from trainscope.core.errors import NoDataError, NoReaderError, ReadError
from trainscope.core.run import Run
from trainscope.readers import csv_log, jsonl, lightning, text_log, wandb
from trainscope.readers.base import LineReader, Reader
from trainscope.readers.csv_layout import Layout, find_layout
from trainscope.readers.csv_rows import after_lines, parse_rows
from trainscope.readers.decode import HEAD_BYTES, decode, decompress
from trainscope.readers.json_rows import parse_lines
from trainscope.readers.registry import reader_for
from trainscope.readers.source import Source, status_of, why
from trainscope.readers.table import Table, concatenate

_LINE_READERS: tuple[LineReader, ...] = (jsonl, csv_log, lightning, wandb)
_MARK_BYTES = 64
"""How much of the start and of the end is kept to tell whether a file is still the same."""
_UNSETTLED_LINES = 3
"""A file of fewer lines may not show its format yet."""


class Follower:
    """Follows one log.

    Parameters
    ----------
    path : str or Path
        The log; it need not exist yet.
    format : str, optional
        `NAME` of the reader; found by the content if not given.
    """

    def __init__(self, path: str | Path, format: str | None = None) -> None:
        self._source = Source(str(path))
        self._format = format
        self._seen: tuple[int, int, int] | None = None
        self.generation = 0
        """How often the log was replaced by another one, or vanished."""
        self._forget()

    def _forget(self) -> None:
        self._offset = 0
        self._lines = 0
        self._start = b""
        self._end = b""
        self._reader: Reader | None = None
        self._layout: Layout | None = None
        self._parts: list[Table] = []

    def poll(self) -> list[Run]:
        """Return the runs in the log as it stands now; none if nothing is new.

        Raises
        ------
        ReadError
            If the file cannot be read, or has lines and no reader recognises them.
        """
        try:
            now = _state_of(self._source.path)
        except FileNotFoundError:
            if self._seen is not None:
                self.generation += 1
            self._seen = None
            self._forget()
            return []
        except (OSError, ValueError) as error:
            raise ReadError(self._source.given, why(error)) from None
        if now == self._seen:
            return []
        if self._was_replaced(now):
            self.generation += 1
            self._forget()
        self._seen = now
        try:
            return self._read()
        except NoDataError:
            return []

    def finish(self) -> list[Run]:
        """Return the runs with a last line that has no line end, as reading the whole log does; none if nothing is new.

        Raises
        ------
        ReadError
            If the file cannot be read.
        """
        status = status_of(self._source.given)
        by_lines = any(self._reader is r for r in _LINE_READERS)
        if status is None or (self._reader is not None and (not by_lines or status.st_size <= self._offset)):
            return []
        source = Source(self._source.given)
        try:
            return reader_for(source, self._format).read_runs(source)
        except (NoDataError, NoReaderError):
            return []

    def _was_replaced(self, now: tuple[int, int, int]) -> bool:
        """Tell whether the file is another one, or was cut and written anew."""
        if self._seen is None or not self._source.path.is_file():
            return False
        if now[0] != self._seen[0] or now[1] < self._offset:
            return True
        # Logs of one program begin alike: what was read last tells them apart.
        end = self._bytes(self._offset - len(self._end), len(self._end))
        return bool(self._start) and (self._bytes(0, len(self._start)) != self._start or end != self._end)

    def _read(self) -> list[Run]:
        if self._reader is None:
            self._reader = self._recognise()
        if self._reader is None:
            return []
        line_reader = next((r for r in _LINE_READERS if r is self._reader), None)
        if line_reader is None or not self._is_plain():
            return self._reader.read_runs(Source(self._source.given))
        if not self._append():
            return []
        table = self._parts[0] if len(self._parts) == 1 else concatenate(self._parts)
        self._parts = [table]
        source = Source(self._source.given)
        # Assembling adds notes to its table; the kept rows must not collect them poll by poll.
        return line_reader.runs_from(_copy(table), source)

    def _recognise(self) -> Reader | None:
        source = Source(self._source.given)
        try:
            return reader_for(source, self._format)
        except NoReaderError:
            if len(source.head.lines()) < _UNSETTLED_LINES or text_log.may_begin(source.head):
                return None
            raise

    def _is_plain(self) -> bool:
        if not self._start:
            self._start = self._bytes(0, _MARK_BYTES)
        unpacked, _, _ = decompress(self._start, limit=HEAD_BYTES)
        notes = decode(self._start).notes
        return unpacked == self._start and not any(n.kind == "encoding" and "UTF" in n.message for n in notes)

    def _bytes(self, start: int, count: int | None = None) -> bytes:
        try:
            with self._source.path.open("rb") as file:
                file.seek(start, os.SEEK_SET)
                return file.read() if count is None else file.read(count)
        except OSError as error:
            raise ReadError(self._source.given, why(error)) from None

    def _append(self) -> bool:
        """Parse the complete lines that came since the last poll; tell whether there were any."""
        fresh = self._bytes(self._offset)
        fresh = fresh[: fresh.rfind(b"\n") + 1]
        if not fresh:
            return False
        text = decode(fresh)
        if text.binary:
            raise ReadError(self._source.given, "binary data was appended to it")
        if self._reader is jsonl:
            table = parse_lines(text.data, self._source.given, first_line=self._lines + 1, final=False)
        else:
            body = text.data
            if self._layout is None:
                self._layout = find_layout(Source(self._source.given).head)
                if self._layout is None:
                    return False
                body = after_lines(body, self._layout.skip)
            table = parse_rows(body, self._layout, final=False)
        if not self._parts and self._layout is not None:
            table.notes[:0] = self._layout.notes
            table.config.update(self._layout.config)
        table.notes[:0] = text.notes
        self._offset += len(fresh)
        self._end = fresh[-_MARK_BYTES:]
        self._lines += fresh.count(b"\n")
        self._parts.append(table)
        return True


def _state_of(path: Path) -> tuple[int, int, int]:
    """Return what changes when a log does: its inode, its size, and when it was written (ns)."""
    status = path.stat()
    if not path.is_dir():
        return status.st_ino, status.st_size, status.st_mtime_ns
    inside = [file.stat() for file in path.rglob("*") if file.is_file()]
    return status.st_ino, sum(s.st_size for s in inside), max((s.st_mtime_ns for s in inside), default=0)


def _copy(table: Table) -> Table:
    return Table(table.rows, dict(table.columns), list(table.notes), dict(table.config))
