"""JSON objects, one a row, to a table: grouped by their keys so that no cell costs a Python call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trainscope.core.run import IntArray
from trainscope.readers.table import Column, Table, check_size, from_objects
from trainscope.readers.vocabulary import CONTAINERS

_MAX_DEPTH = 8


class RecordTable:
    """Collects rows of JSON objects; :meth:`table` returns them as columns.

    Parameters
    ----------
    given : str
        What the user calls the log, for the error of one that has no end of names.
    """

    def __init__(self, given: str) -> None:
        self.rows = 0
        self._given = given
        self._parts: dict[str, list[tuple[IntArray, Column]]] = {}

    def add(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Append rows."""
        rows = np.arange(self.rows, self.rows + len(records))
        self.rows += len(records)
        self._add(records, rows, "", 0)

    def _add(self, records: Sequence[Mapping[str, Any]], rows: IntArray, prefix: str, depth: int) -> None:
        groups: dict[tuple[str, ...], list[int]] = {}
        for index, keys in enumerate(map(tuple, records)):
            groups.setdefault(keys, []).append(index)
        for keys, members in groups.items():
            some = records if len(groups) == 1 else [records[i] for i in members]
            at = rows if len(groups) == 1 else rows[members]
            for key, values in zip(keys, zip(*(r.values() for r in some), strict=True), strict=True):
                self._column(prefix + key, values, at, depth)

    def _column(self, name: str, values: tuple[Any, ...], rows: IntArray, depth: int) -> None:
        nested = [i for i, v in enumerate(values) if type(v) is dict] if dict in set(map(type, values)) else []
        if nested and depth < _MAX_DEPTH:
            self._add([values[i] for i in nested], rows[nested], _inner_prefix(name), depth + 1)
            flat = sorted(set(range(len(values))) - set(nested))
            values, rows = tuple(values[i] for i in flat), rows[flat]
        if values:
            if name not in self._parts:
                check_size(self._given, len(self._parts) + 1)
                self._parts[name] = []
            self._parts[name].append((rows, from_objects(values)))

    def table(self) -> Table:
        """Return every row added so far."""
        check_size(self._given, len(self._parts), self.rows)
        return Table(self.rows, {name: self._join(parts) for name, parts in self._parts.items()})

    def _join(self, parts: list[tuple[IntArray, Column]]) -> Column:
        value, state = np.full(self.rows, np.nan), np.zeros(self.rows, np.uint8)
        text: dict[int, str] = {}
        for rows, column in parts:
            value[rows], state[rows] = column.value, column.state
            text.update({int(rows[i]): what for i, what in column.text.items()})
        return Column(value, state, text)


def _inner_prefix(name: str) -> str:
    return "" if name.lower() in CONTAINERS else f"{name}."
