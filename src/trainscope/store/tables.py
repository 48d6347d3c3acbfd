"""The tables with one or a few rows a step: global scalars, shares, plug-in metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trainscope.store import layout, retention, schema
from trainscope.store.rolling import RollingTable

Scalar = float | int | bool | None
PluginRow = tuple[str, str, float]


class StepTables:
    """Buffers the rows of a few steps and appends them to their files."""

    def __init__(self, run: Path, *, window: int, factor: int) -> None:
        self._scalars = RollingTable(
            run / layout.GLOBAL,
            schema.global_schema(),
            window=max(window, retention.SCALAR_WINDOW),
            factor=factor,
        )
        self._shares = RollingTable(run / layout.SHARES, schema.shares_schema(), window=window, factor=factor)
        self._plugins = RollingTable(run / layout.PLUGINS, schema.plugin_schema(), window=window, factor=factor)
        self._rows: list[Mapping[str, Scalar]] = []
        self._share_rows: list[tuple[int, str, NDArray[np.float64]]] = []
        self._plugin_rows: list[tuple[int, PluginRow]] = []

    def __len__(self) -> int:
        """Return how many steps wait."""
        return len(self._rows)

    @property
    def last_step(self) -> int:
        """The last step on disk, -1 if there is none."""
        return self._scalars.last_step

    def add(
        self,
        row: Mapping[str, Scalar],
        shares: Mapping[str, NDArray[np.floating[Any]]],
        plugin_rows: Sequence[PluginRow],
    ) -> None:
        """Buffer one step; `row` has its ``step``."""
        step = int(row["step"] or 0)
        self._rows.append(row)
        for block, values in shares.items():
            self._share_rows.append((step, layout.clean(block), np.array(values, dtype=np.float64)))
        self._plugin_rows += [(step, found) for found in plugin_rows]

    def flush(self) -> None:
        """Append what is buffered; it is gone from the buffer whether or not that works.

        Raises
        ------
        StoreError
            If a file cannot be written.
        """
        rows, self._rows = self._rows, []
        shares, self._share_rows = self._share_rows, []
        plugins, self._plugin_rows = self._plugin_rows, []
        if rows:
            self._scalars.append(self.batch(rows))
        if shares:
            self._shares.append(_share_batch(shares, self._shares.schema))
        if plugins:
            self._plugins.append(_plugin_batch(plugins, self._plugins.schema))

    def batch(self, rows: Sequence[Mapping[str, Scalar]]) -> pa.RecordBatch:
        """Return rows as a batch of ``global.arrow``, which gets the columns it lacks."""
        new = sorted({name for row in rows for name in row} - set(self._scalars.schema.names))
        if new:
            self._scalars.widen(new)
        known = self._scalars.schema
        arrays = [pa.array([_as(row.get(f.name), f.type) for row in rows], f.type) for f in known]
        return pa.RecordBatch.from_arrays(arrays, schema=known)

    def adopt(self, recent: int) -> list[dict[str, Scalar]]:
        """Take over an earlier session's files; return its last `recent` rows of scalars."""
        table = self._scalars.adopt()
        self._shares.adopt()
        self._plugins.adopt()
        if table is None:
            return []
        return list(table.slice(max(0, len(table) - recent)).to_pylist())

    def thinning(self) -> Iterator[None] | None:
        """Return the work of thinning a file that has become too long, None if there is none."""
        return self._scalars.thinning() or self._shares.thinning() or self._plugins.thinning()

    def last_losses(self, before: int, count: int) -> list[float]:
        """Return the losses on disk of the last `count` steps before `before`, oldest first."""
        table = self._scalars.before(before)
        return [] if table is None else table.column("loss").drop_null().to_pylist()[-count:]

    def last_shares(self, before: int, count: int) -> dict[str, list[float]]:
        """Return the largest share of each router and addressor at the last steps before `before`, oldest first."""
        table = self._shares.before(before)
        found: dict[str, list[float]] = {}
        if table is not None:
            for block, shares in zip(
                table.column("block").to_pylist(), table.column("shares").to_pylist(), strict=True
            ):
                found.setdefault(block, []).append(max(shares, default=0.0))
        return {block: values[-count:] for block, values in found.items()}

    def drop_from(self, step: int) -> None:
        """Drop the rows on disk at or after `step`."""
        for table in (self._scalars, self._shares, self._plugins):
            table.drop_from(step)


def _as(value: Scalar, kind: pa.DataType) -> Scalar:
    if value is None:
        return None
    if pa.types.is_floating(kind):
        return float(value)
    return bool(value) if pa.types.is_boolean(kind) else int(value)


def _share_batch(rows: list[tuple[int, str, NDArray[np.float64]]], known: pa.Schema) -> pa.RecordBatch:
    offsets = np.concatenate(([0], np.cumsum([len(values) for _, _, values in rows]))).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate([v for _, _, v in rows])))
    steps = pa.array([step for step, _, _ in rows], pa.int64())
    blocks = pa.array([block for _, block, _ in rows], pa.string())
    return pa.RecordBatch.from_arrays([steps, blocks, lists], schema=known)


def _plugin_batch(rows: list[tuple[int, PluginRow]], known: pa.Schema) -> pa.RecordBatch:
    columns = [
        pa.array([step for step, _ in rows], pa.int64()),
        pa.array([layout.clean(plugin) for _, (plugin, _, _) in rows], pa.string()),
        pa.array([layout.clean(metric) for _, (_, metric, _) in rows], pa.string()),
        pa.array([float(value) for _, (_, _, value) in rows], pa.float64()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=known)
