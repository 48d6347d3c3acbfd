"""Weight histograms as they come out of layer files and of the journal: rows of counts and edges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trainscope.store.chunks import Chunk
from trainscope.store.schema import HISTOGRAM_COLUMNS


class Counted(NamedTuple):
    """Histograms of one layer at some steps."""

    step: NDArray[np.int64]
    """(k,)"""
    counts: NDArray[np.float64]
    """(k, bins)"""
    edges: NDArray[np.float64]
    """(k, bins + 1)"""


def of_table(table: pa.Table) -> Counted:
    """Return the histograms in the rows of one layer."""
    if not all(name in table.schema.names for name in HISTOGRAM_COLUMNS):
        return _none()
    counts, edges = (table.column(name).combine_chunks() for name in HISTOGRAM_COLUMNS)
    rows = np.flatnonzero(counts.is_valid().to_numpy(zero_copy_only=False))
    return _of_rows(table.column("step").to_numpy()[rows], counts, edges, rows)


def of_chunk(chunk: Chunk) -> dict[str, Counted]:
    """Return the histograms in a chunk of the journal, by layer."""
    if not all(name in chunk.batch.schema.names for name in HISTOGRAM_COLUMNS):
        return {}
    counts, edges = (chunk.batch.column(name) for name in HISTOGRAM_COLUMNS)
    rows = np.flatnonzero(counts.is_valid().to_numpy(zero_copy_only=False))
    n = max(len(chunk.names), 1)
    found = {}
    for place in np.unique(rows % n):
        mine = rows[rows % n == place]
        found[chunk.names[place]] = _of_rows(chunk.steps[mine // n], counts, edges, mine)
    return found


def joined(parts: Iterable[Counted]) -> Counted:
    """Return all parts in step order, the later part where two have one step; of the width of the newest."""
    some = [part for part in parts if len(part.step)]
    if not some:
        return _none()
    bins = some[-1].counts.shape[1]
    some = [part for part in some if part.counts.shape[1] == bins]
    step = np.concatenate([part.step for part in some])
    order = np.argsort(step, kind="stable")
    last = np.append(step[order][1:] != step[order][:-1], True)
    at = order[last]
    return Counted(step[at], *(np.concatenate([part[i] for part in some])[at] for i in (1, 2)))


def _of_rows(step: NDArray[np.int64], counts: pa.Array, edges: pa.Array, rows: NDArray[np.int64]) -> Counted:
    """Return the rows that hold a histogram: neither empty, as version 1 wrote them, nor of another width."""
    found = [
        (at, count, edge)
        for at, count, edge in zip(step, counts.take(rows).to_pylist(), edges.take(rows).to_pylist(), strict=True)
        if count and edge and len(edge) == len(count) + 1
    ]
    found = [row for row in found if len(row[1]) == len(found[-1][1])]
    if not found:
        return _none()
    return Counted(np.array([row[0] for row in found]), *(np.array([row[i] for row in found], float) for i in (1, 2)))


def _none() -> Counted:
    return Counted(np.zeros(0, np.int64), np.zeros((0, 0)), np.zeros((0, 1)))
