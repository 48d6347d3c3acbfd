"""One file a layer: what has left the journal, thinned out with age."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from trainscope.store import layout, retention, schema, stream
from trainscope.store.block import FloatArray
from trainscope.store.chunks import Chunk, by_layer, chunks

CHUNK_BYTES = 128 << 20
"""How much of the journal is turned from step-major to layer-major at once."""


@dataclass(slots=True)
class _Held:
    extra: tuple[str, ...]
    """Statistics in the file beyond the known ones."""
    rows: int = 0
    last_step: int = -1


class LayerStore:
    """The folder ``layers/``. Files are opened for one append and closed again."""

    def __init__(self, run: Path, *, window: int, factor: int) -> None:
        self._run, self._folder = run, run / layout.LAYERS
        self._window, self._factor = window, factor
        self.files = layout.LayerFiles()
        self._held: dict[str, _Held] = {}
        self._extra: tuple[str, ...] = ()
        self._long: dict[str, None] = {}
        """Layers whose file must be thinned."""
        self.edges: dict[str, FloatArray] = {}
        """Histogram edges of an earlier session, by layer."""

    def adopt(self, known: list[tuple[str, str]]) -> None:
        """Take over the files of an earlier session: cut torn tails, count rows.

        Parameters
        ----------
        known : list of (name, file)
            In model order, from the manifest; files it misses are found by their metadata.
        """
        named = dict(known)
        on_disk = {p.name: name_of(p) for p in sorted(self._folder.glob("*" + layout.SUFFIX))}
        for file, name in on_disk.items():
            if name is not None and name not in named:
                named[name] = file
        for name, file in named.items():
            self.files.adopt(name, file)
            path = self._folder / file
            stream.repair(path)
            table = stream.read(path) if path.exists() else None
            if table is not None:
                last = int(table.column("step")[-1].as_py()) if len(table) else -1
                extra = schema.extra(table.schema)
                self._held[name] = _Held(extra, len(table), last)
                self._extra = (*self._extra, *(x for x in extra if x not in self._extra))
                if "hist_edges" in table.schema.names:
                    known_edges = table.column("hist_edges").drop_null()
                    if len(known_edges):
                        self.edges[name] = np.array(known_edges[-1].as_py())

    def folding(self, segment: Path, richness: Mapping[int, int], *, newest: int) -> Iterator[None]:
        """Move a segment's steps into the layer files, thinned where they are older than the window.

        A little at each turn; memory is bounded: what is too much at once goes in several passes over the
        segment, each for some of the layers. Safe to begin again: a layer that has a step already does not
        get it twice.

        Parameters
        ----------
        richness : mapping of int to int
            Steps of the segment, and how many statistics each has.
        newest : int
            The step that the window is counted from.

        Raises
        ------
        StoreError
            If a file cannot be written. The segment is then still there.
        """
        if not segment.exists():
            return  # somebody cleaned up: its steps are gone, the other segments are not
        step = np.array(sorted(richness), dtype=np.int64)
        weight = np.array([richness[s] for s in step.tolist()], dtype=np.int64)
        mask = retention.keep(step, weight, window=self._window, factor=self._factor, newest=newest)
        kept = step[mask]
        passes = 1 + int(segment.stat().st_size * len(kept) / max(len(step), 1)) // CHUNK_BYTES
        begin, n = 0, 1
        while begin < n and len(kept):
            found: list[Chunk] = []
            for chunk in chunks(segment):
                n = len(chunk.names)
                inside = np.isin(chunk.steps, kept)
                if inside.any():
                    found.append(chunk.part(begin, begin + -(-n // passes), inside))
                yield
            yield from self._appending(found)
            begin += -(-n // passes)
        stream.remove(segment)

    def _appending(self, found: list[Chunk]) -> Iterator[None]:
        if not found:
            return
        extra = schema.extra(*(chunk.batch.schema for chunk in found))
        self._extra = (*self._extra, *(name for name in extra if name not in self._extra))
        for name, rows in by_layer(found, schema.layer_schema("", self._extra)):
            self._append(name, rows)
            yield

    def _append(self, name: str, rows: pa.Table) -> None:
        held = self._held.get(name)
        path = self._folder / self.files.file(name)
        if held is None:
            held = self._held[name] = _Held(self._extra)
        if held.last_step >= int(rows.column("step")[0].as_py()):
            rows = rows.filter(pa.array(rows.column("step").to_numpy() > held.last_step))
            if not len(rows):
                return
        if held.extra != self._extra:  # a column that plug-ins or newer recorders add has appeared
            self._widen(name, path)
            held = self._held[name]
        head = None if held.rows else schema.layer_schema(name, self._extra)
        stream.append_bytes(path, stream.messages(head, rows.to_batches()))
        held.rows += len(rows)
        held.last_step = int(rows.column("step")[-1].as_py())
        if held.rows > 2 * retention.MAX_OLD_STEPS + self._window:
            self._long[name] = None

    def thinning(self) -> Iterator[None] | None:
        """Return the work of thinning one file that has become too long, None if there is none."""
        return self._thinning(next(iter(self._long))) if self._long else None

    def _thinning(self, name: str) -> Iterator[None]:
        del self._long[name]
        path, held = self._folder / self.files.file(name), self._held[name]
        table = stream.read(path)
        yield
        if table is None:
            return
        step = table.column("step").to_numpy()
        richness = np.zeros(len(table), dtype=np.int64)
        for column in table.columns[1:]:
            richness += column.is_valid().to_numpy()
        mask = retention.keep(step, richness, window=self._window, factor=self._factor, newest=held.last_step)
        self._rewrite(name, path, table.filter(pa.array(mask)))

    def drop_from(self, step: int) -> None:
        """Drop every row at or after `step`.

        Raises
        ------
        StoreError
            If a file cannot be written.
        """
        for name, held in self._held.items():
            if held.last_step >= step:
                path = self._folder / self.files.file(name)
                table = stream.read(path)
                if table is not None:
                    kept = table.filter(pa.array(table.column("step").to_numpy() < step))
                    self._rewrite(name, path, kept)

    def _rewrite(self, name: str, path: Path, table: pa.Table) -> None:
        table = schema.conform(table, schema.layer_schema(name, self._extra)).combine_chunks()
        stream.write_whole(path, table.schema, table.to_batches())
        last = int(table.column("step")[-1].as_py()) if len(table) else -1
        self._held[name] = _Held(self._extra, len(table), last)

    def _widen(self, name: str, path: Path) -> None:
        """Give a file the columns that have appeared since it was begun."""
        table = stream.read(path) if self._held[name].rows else None
        if table is None:
            self._held[name] = _Held(self._extra)
        else:
            self._rewrite(name, path, table)

    def rows(self, name: str, first: int, last: int) -> pa.Table | None:
        """Return a layer's rows of the steps `first` to `last` that have left the journal, None if none."""
        held = self._held.get(name)
        if held is None or held.last_step < first:
            return None
        table = stream.read(self._folder / self.files.file(name))
        if table is None:
            return None
        step = table.column("step").to_numpy()
        return table.filter(pa.array((step >= first) & (step <= last)))


def name_of(path: Path) -> str | None:
    """Return the full name of the layer a file is about, None where its schema does not say."""
    found = stream.schema_of(path)
    raw = None if found is None or found.metadata is None else found.metadata.get(schema.LAYER_KEY)
    return None if raw is None else raw.decode("utf-8", "replace")
