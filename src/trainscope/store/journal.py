"""The newest steps of every layer, all layers of a step side by side in one file.

One append a flush instead of one a layer, and one file open instead of ten thousand. A segment holds
one set of layers and columns; row ``i * n_layers + j`` of a batch is layer j at its i-th step.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trainscope.store import layout, schema, stream
from trainscope.store.block import BoolArray, FloatArray, LayerBlock

IntArray = NDArray[np.int64]
BATCH_BYTES = 4 << 20
"""Size of a batch from which it is written though no flush is due: folding reads it in one piece."""


class BlockBuffer:
    """Collects the blocks of a few steps that share their layers, column by column."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.names: tuple[str, ...] = ()
        self.labels: tuple[str, ...] = ()
        """The names as they are written: valid UTF-8."""
        self._steps: list[int] = []
        self._richness: list[int] = []
        self._values: dict[str, FloatArray] = {}
        self._valid: dict[str, BoolArray] = {}
        self._histograms: dict[int, tuple[FloatArray, FloatArray]] = {}
        self.has_histograms = False
        """Whether any block so far had histograms."""

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def is_full(self) -> bool:
        """Whether the buffered steps make a batch as large as is good to read again."""
        n = len(self._steps)
        return n == self._capacity or n * len(self.names) * len(self._values) * 8 > BATCH_BYTES

    def fits(self, block: LayerBlock) -> bool:
        """Tell whether `block` has the layers of those already here."""
        return not self._steps or block.names is self.names or block.names == self.names

    def add(self, step: int, block: LayerBlock) -> None:
        """Copy the numbers of one step."""
        row, n = len(self._steps), len(block.names)
        rich = 0
        if not self._steps and block.names is not self.names:
            if block.names != self.names:
                self._values, self._valid = {}, {}
                self.labels = _labels(block.names)
            self.names = block.names
        for name, column in block.columns.items():
            if name not in self._values:
                self._values[name] = np.zeros((self._capacity, n))
                self._valid[name] = np.zeros((self._capacity, n), dtype=bool)
            self._values[name][row] = column
            known = block.valid.get(name) if block.valid else None
            self._valid[name][row] = True if known is None else known
            rich += known is None or bool(known.any())
        if block.histograms is not None:
            counts, edges = block.histograms
            self._histograms[row] = (np.array(counts, dtype=float), np.array(edges, dtype=float))
            self.has_histograms = True
            rich += len(schema.HISTOGRAM_COLUMNS)
        self._steps.append(step)
        self._richness.append(rich)

    def columns(self) -> tuple[str, ...]:
        """Return the statistics seen so far, known ones first."""
        known = [name for name in schema.LAYER_COLUMNS if name in self._values]
        return (*known, *sorted(self._values.keys() - set(known)))

    def richness(self) -> dict[int, int]:
        """Return how many statistics each buffered step has."""
        return dict(zip(self._steps, self._richness, strict=True))

    @property
    def first_step(self) -> int:
        """The oldest step in here."""
        return self._steps[0]

    def take(self, columns: tuple[str, ...], dictionary: pa.Array, *, histograms: bool) -> list[pa.Array]:
        """Return the arrays of one record batch; they look into this buffer until `reset`."""
        k, n = len(self._steps), len(self.names)
        arrays = [
            pa.array(np.repeat(np.asarray(self._steps, dtype=np.int64), n)),
            pa.DictionaryArray.from_arrays(pa.array(np.tile(np.arange(n, dtype=np.int32), k)), dictionary),
        ]
        for name in columns:
            if name in self._values:
                arrays.append(_floats(self._values[name][:k], self._valid[name][:k]))
            else:
                arrays.append(pa.nulls(k * n, pa.float64()))
        if histograms:
            arrays += _lists(self._histograms, k, n)
        return arrays

    def reset(self) -> None:
        """Forget the buffered steps."""
        self._steps, self._richness, self._histograms = [], [], {}
        for valid in self._valid.values():
            valid[:] = False


def _labels(names: tuple[str, ...]) -> tuple[str, ...]:
    labels = tuple(layout.clean(name) for name in names)
    if len(set(labels)) != len(labels):
        twice = next(label for at, label in enumerate(labels) if label in labels[:at])
        raise ValueError(f"layer {twice!r} is named twice in one block")
    return labels


def _floats(values: FloatArray, valid: BoolArray) -> pa.Array:
    if valid.all():
        return pa.Array.from_buffers(pa.float64(), values.size, [None, pa.py_buffer(values)])
    bitmap = np.packbits(valid.ravel(), bitorder="little")
    return pa.Array.from_buffers(pa.float64(), values.size, [pa.py_buffer(bitmap), pa.py_buffer(values)])


def _lists(histograms: dict[int, tuple[FloatArray, FloatArray]], k: int, n: int) -> list[pa.Array]:
    """Return the two list columns; rows without a histogram are null."""
    present = np.zeros((k, n), dtype=bool)
    parts: tuple[list[FloatArray], list[FloatArray]] = ([], [])
    widths: tuple[NDArray[np.int32], ...] = tuple(np.zeros((k, n), dtype=np.int32) for _ in parts)
    for row, pair in sorted(histograms.items()):
        present[row] = ~np.isnan(pair[1][:, 0])
        for part, width, array in zip(parts, widths, pair, strict=True):
            part.append(array[present[row]].ravel())
            width[row][present[row]] = array.shape[1]
    missing = pa.array(~present.ravel())
    columns = []
    for part, width in zip(parts, widths, strict=True):
        offsets = np.concatenate(([0], np.cumsum(width.ravel()))).astype(np.int32)
        values = np.concatenate(part) if part else np.zeros(0)
        columns.append(pa.ListArray.from_arrays(pa.array(offsets), pa.array(values), mask=missing))
    return columns


class _Sink:
    """Collects what Arrow writes, so that it is whole before any of it reaches the disk."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[memoryview] = []

    def write(self, data: Any) -> int:  # noqa: ANN401 - bytes or an Arrow buffer
        # Not copied: what it looks into stays as it is until the next step is buffered.
        self._parts.append(memoryview(data))
        return self._parts[-1].nbytes

    def flush(self) -> None: ...

    def take(self) -> list[memoryview]:
        parts, self._parts = self._parts, []
        return parts


class SegmentWriter:
    """Appends the buffered steps to one segment file, which is closed between two flushes."""

    def __init__(self, path: Path, buffer: BlockBuffer) -> None:
        self.path, self.names, self.columns = path, buffer.names, buffer.columns()
        self.steps = 0
        self._histograms = buffer.has_histograms
        self._dictionary = pa.array(buffer.labels, pa.string())
        self._schema = schema.journal_schema(self.columns, histograms=self._histograms)
        self._sink = _Sink()
        self._writer = pa.ipc.new_stream(pa.PythonFile(self._sink, mode="w"), self._schema)

    def takes(self, buffer: BlockBuffer) -> bool:
        """Tell whether what is buffered has this segment's layers and no new column."""
        return (
            (buffer.names is self.names or buffer.names == self.names)
            and set(buffer.columns()) <= set(self.columns)
            and (self._histograms or not buffer.has_histograms)
        )

    def write(self, buffer: BlockBuffer) -> None:
        """Append what is buffered and empty the buffer.

        Raises
        ------
        StoreError
            If it cannot be written; this segment must not be used again then.
        """
        self.steps += len(buffer)
        arrays = buffer.take(self.columns, self._dictionary, histograms=self._histograms)
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        stream.append_bytes(self.path, *self._sink.take())
        buffer.reset()
