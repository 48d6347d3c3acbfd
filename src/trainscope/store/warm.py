"""Keeps the layer tables of the run that was read last."""

from __future__ import annotations

import weakref

import pyarrow as pa

WARM_BYTES = 128 << 20


class Warm:
    """Layer tables of the run that was read last, up to ``WARM_BYTES`` of them.

    Whoever looks at a run asks for one statistic of all layers after another: its files must not be read again
    for each. Of two hundred runs only one may be kept.
    """

    def __init__(self) -> None:
        self._reader: weakref.ref[object] | None = None
        self._tables: dict[str, list[pa.Table]] = {}
        self._bytes = 0

    def of(self, reader: object) -> dict[str, list[pa.Table]]:
        """Return what is kept of a run; what was kept of another is dropped."""
        if self._reader is None or self._reader() is not reader:
            self._reader, self._tables, self._bytes = weakref.ref(reader), {}, 0
        return self._tables

    def keep(self, layer: str, tables: list[pa.Table]) -> None:
        """Keep the tables of one layer of that run; the oldest give way."""
        self._tables[layer] = tables
        self._bytes += _size(tables)
        while self._bytes > WARM_BYTES and len(self._tables) > 1:
            self._bytes -= _size(self._tables.pop(next(iter(self._tables))))


def _size(tables: list[pa.Table]) -> int:
    """Return about how many bytes some tables hold; to ask Arrow costs as much as to read them."""
    return sum(8 * table.num_rows * table.num_columns for table in tables)


WARM = Warm()
"""The one of this process."""
