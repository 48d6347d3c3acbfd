"""Answers for one layer and statistic from the step-major journal of a killed or running recording."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainscope.store import histograms, layout, stream
from trainscope.store.chunks import chunks
from trainscope.store.histograms import Counted
from trainscope.store.schema import HISTOGRAM_COLUMNS

CACHE_BYTES = 512 << 20
"""Statistics kept in memory: reading layer after layer must not read the journal again for each."""


@dataclass(frozen=True, slots=True, eq=False)
class _Matrix:
    """One statistic of one segment."""

    index: dict[str, int]
    step: NDArray[np.int64]
    value: NDArray[np.float64]
    """(steps, layers)"""
    valid: NDArray[np.bool_]


class JournalReader:
    """The journal folder of a run, which may be empty or missing."""

    def __init__(self, run: Path) -> None:
        self._segments = layout.segments(run)
        self._cache: dict[str, list[_Matrix]] = {}
        self._cached = 0
        self._histograms: list[dict[str, Counted]] | None = None

    def columns(self) -> tuple[str, ...]:
        """Return the statistics of any segment."""
        known = (stream.schema_of(path) for path in self._segments)
        return tuple(dict.fromkeys(name for s in known if s is not None for name in s.names))

    def names(self) -> tuple[str, ...]:
        """Return the layers of any segment, in model order."""
        found: dict[str, None] = {}
        for path in self._segments:
            for chunk in chunks(path, ()):
                found.update(dict.fromkeys(chunk.names))
                break
        return tuple(found)

    def points(self, layer: str, metric: str) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Yield steps and values of one statistic of one layer, segment by segment."""
        for matrix in self._matrices(metric):
            at = matrix.index.get(layer)
            if at is not None:
                valid = matrix.valid[:, at]
                yield matrix.step[valid], matrix.value[valid, at]

    def histograms(self, layer: str) -> Iterator[Counted]:
        """Yield the histograms of one layer, segment by segment; all layers of the journal are read once."""
        if self._histograms is None:
            self._histograms = [histograms.of_chunk(c) for p in self._segments for c in chunks(p, HISTOGRAM_COLUMNS)]
        for found in self._histograms:
            if layer in found:
                yield found[layer]

    def _matrices(self, metric: str) -> list[_Matrix]:
        if metric not in self._cache:
            found = [m for path in self._segments if (m := _matrix(path, metric)) is not None]
            self._cached += sum(m.value.nbytes for m in found)
            while self._cached > CACHE_BYTES and self._cache:
                gone = self._cache.pop(next(iter(self._cache)))
                self._cached -= sum(m.value.nbytes for m in gone)
            self._cache[metric] = found
        return self._cache[metric]


def _matrix(path: Path, metric: str) -> _Matrix | None:
    found = [c for c in chunks(path, (metric,)) if metric in c.batch.schema.names]
    if not found:
        return None
    columns = [c.batch.column(metric) for c in found]
    n = len(found[0].names)
    return _Matrix(
        {name: at for at, name in enumerate(found[0].names)},
        np.concatenate([c.steps for c in found]),
        np.concatenate([c.fill_null(np.nan).to_numpy() for c in columns]).reshape(-1, n),
        np.concatenate([c.is_valid().to_numpy(zero_copy_only=False) for c in columns]).reshape(-1, n),
    )
