"""Reads journal segments: some steps of all layers at a time, and turns them into rows of one layer each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trainscope.store import schema, stream
from trainscope.store.block import BoolArray, FloatArray

IntArray = NDArray[np.int64]
LAYERS_AT_ONCE = 128


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Some steps of all layers of one segment."""

    names: tuple[str, ...]
    steps: IntArray
    """(k,) steps, in the order of the batch."""
    batch: pa.RecordBatch
    """k * n rows, step-major."""

    def richness(self) -> IntArray:
        """Return how many statistics each step has, (k,)."""
        total = np.zeros(len(self.steps), dtype=np.int64)
        for column in self.batch.columns[2:]:
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            total += valid.reshape(len(self.steps), -1).any(axis=1)
        return total

    def edges(self) -> dict[str, FloatArray]:
        """Return the histogram edges in here, by layer."""
        if "hist_edges" not in self.batch.schema.names:
            return {}
        column = self.batch.column("hist_edges")
        rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        return {self.names[row % len(self.names)]: np.array(column[int(row)].as_py()) for row in rows}

    def part(self, begin: int, end: int, mask: BoolArray | None = None) -> Chunk:
        """Return the layers `begin` to `end` (exclusive) of the steps where `mask` (k,) is true."""
        n = len(self.names)
        rows = np.arange(len(self.steps)) if mask is None else np.flatnonzero(mask)
        if begin == 0 and end >= n and len(rows) == len(self.steps):
            return self
        index = (rows[:, np.newaxis] * n + np.arange(begin, min(end, n))).ravel()
        return Chunk(self.names[begin:end], self.steps[rows], self.batch.take(pa.array(index)))

    def only(self, mask: BoolArray) -> Chunk:
        """Return the steps where `mask` (k,) is true."""
        if mask.all():
            return self
        rows = pa.array(np.repeat(mask, len(self.names)))
        return Chunk(self.names, self.steps[mask], self.batch.filter(rows))


def chunks(path: Path, columns: tuple[str, ...] | None = None) -> Iterator[Chunk]:
    """Yield what a segment holds, batch by batch, with all or only some of its statistics."""
    names: tuple[str, ...] = ()
    dictionary: pa.Array | None = None
    for batch in stream.batches(path):
        layer = batch.column("layer")
        if dictionary is None or not layer.dictionary.equals(dictionary):
            dictionary = layer.dictionary
            names = tuple(dictionary.to_pylist())
        if columns is not None:
            batch = batch.select(["step", "layer", *(c for c in columns if c in batch.schema.names)])
        steps = batch.column("step").to_numpy()[:: max(len(names), 1)]
        yield Chunk(names, steps, batch)


def by_layer(found: list[Chunk], known: pa.Schema) -> Iterator[tuple[str, pa.Table]]:
    """Turn chunks that share their layers step-major to layer-major; yield each layer's own rows.

    With the columns of `known`, and what else any chunk has. ``LAYERS_AT_ONCE`` are turned at a time, so that
    the first comes soon and the memory is that of a few.
    """
    names = found[0].names
    for begin in range(0, len(names), LAYERS_AT_ONCE):
        block = names[begin : begin + LAYERS_AT_ONCE]
        table = _joined([chunk.part(begin, begin + len(block)) for chunk in found], known)
        order = np.arange(len(table)).reshape(-1, len(block)).T.ravel()
        table = table.take(pa.array(order)).combine_chunks()
        k = len(table) // len(block)
        for index, name in enumerate(block):
            yield name, table.slice(index * k, k)


def _joined(parts: list[Chunk], known: pa.Schema) -> pa.Table:
    tables = [
        schema.conform(pa.Table.from_batches([c.batch for c in same]).drop_columns(["layer"]), known)
        for _, same in groupby(parts, key=lambda chunk: chunk.batch.schema.names)
    ]
    return pa.concat_tables(tables, promote_options="default").combine_chunks()
