"""One table over all steps (global scalars, shares, plug-in rows), appended to and thinned out with age."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trainscope.store import retention, schema, stream

BATCHES_AT_ONCE = 200
"""Flushes that are read in one piece."""
_SPIKE_WEIGHT = 1000
"""Makes a step with a spike or a non-finite loss outlive every ordinary one of its stretch."""


class RollingTable:
    """A stream file whose rows come in step order; several rows may share a step."""

    def __init__(self, path: Path, known: pa.Schema, *, window: int, factor: int) -> None:
        self.path, self.schema = path, known
        self._window, self._factor = window, factor
        self._steps = self._version = 0
        self.last_step = -1

    def adopt(self) -> pa.Table | None:
        """Take over what an earlier session left: cut a torn tail, count steps; return the rows."""
        stream.repair(self.path)
        table = stream.read(self.path) if self.path.exists() else None
        if table is None:
            return None
        full = schema.conform(table, self.schema)
        if full.schema.names != table.schema.names:
            self.schema = full.schema
            self._rewrite(full)
        self.schema = full.schema
        self._count(full)
        return full

    def append(self, rows: pa.RecordBatch) -> None:
        """Append rows with this table's schema.

        Raises
        ------
        StoreError
            If they cannot be written.
        """
        if not rows.num_rows:
            return
        stream.append(self.path, self.schema, [rows])
        step = rows.column("step").to_numpy()
        self._steps += len(np.unique(step))
        self.last_step = int(step[-1])

    def widen(self, names: list[str]) -> None:
        """Add nullable float columns; rewrites what is there."""
        self.schema = pa.schema(
            [*self.schema, *(pa.field(name, pa.float64()) for name in names)], metadata=self.schema.metadata
        )
        table = stream.read(self.path) if self.path.exists() else None
        if table is not None:
            self._rewrite(schema.conform(table, self.schema))

    def before(self, step: int) -> pa.Table | None:
        """Return the rows on disk before `step`, None if there is no file."""
        table = stream.read(self.path) if self.path.exists() else None
        return None if table is None else table.filter(pa.array(table.column("step").to_numpy() < step))

    def drop_from(self, step: int) -> None:
        """Drop every row at or after `step`.

        Raises
        ------
        StoreError
            If the file cannot be written.
        """
        table = stream.read(self.path) if self.path.exists() else None
        if table is not None and self.last_step >= step:
            self._rewrite(table.filter(pa.array(table.column("step").to_numpy() < step)))

    def thinning(self) -> Iterator[None] | None:
        """Return the work of thinning the file out, a little at each turn; None if it is not too long."""
        return self._thinning() if self._steps > 2 * self._window + retention.MAX_OLD_STEPS else None

    def _thinning(self) -> Iterator[None]:
        version, end = self._version, 0
        parts: list[pa.Table] = []
        found: list[pa.RecordBatch] = []
        for batch, end in stream.scan(self.path):  # noqa: B007
            found.append(batch)
            if len(found) == BATCHES_AT_ONCE:
                parts.append(pa.Table.from_batches(found).combine_chunks())
                found = []
                yield
        parts += [pa.Table.from_batches(found).combine_chunks()] if found else []
        step, inverse = np.unique(np.concatenate([p.column("step").to_numpy() for p in parts]), return_inverse=True)
        richness = np.zeros(len(step), dtype=np.int64)
        np.maximum.at(richness, inverse, np.concatenate([_weight(p) for p in parts]))
        mask = retention.keep(step, richness, window=self._window, factor=self._factor, newest=int(step[-1]))
        yield
        new = self.path.with_name(self.path.name + ".part")
        stream.remove(new)
        for part, rows in zip(parts, np.split(mask[inverse], np.cumsum([len(p) for p in parts])[:-1]), strict=True):
            stream.append(new, self.schema, part.filter(pa.array(rows)).combine_chunks().to_batches())
            yield
            if version != self._version:  # rewritten meanwhile, with other columns or without a rewound tail
                stream.remove(new)
                return
        stream.replace(new, self.path, after=end)
        self._steps -= int(np.count_nonzero(~mask))

    def _rewrite(self, table: pa.Table) -> None:
        self._version += 1
        table = table.combine_chunks()
        stream.write_whole(self.path, self.schema, table.to_batches())
        self._count(table)

    def _count(self, table: pa.Table) -> None:
        step = table.column("step").to_numpy()
        self._steps = len(np.unique(step))
        self.last_step = int(step[-1]) if len(step) else -1


def _weight(table: pa.Table) -> NDArray[np.int64]:
    weight = np.ones(len(table), dtype=np.int64)
    if "is_spike" in table.schema.names:
        weight += _SPIKE_WEIGHT * (table.column("is_spike").fill_null(False).to_numpy() == 1)
    if "loss" in table.schema.names:
        weight += _SPIKE_WEIGHT * ~np.isfinite(table.column("loss").fill_null(0.0).to_numpy())
    return weight
