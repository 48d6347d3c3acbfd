"""Reads a recorded run, finished, killed or still being written, of this version or of 1.x."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trainscope.store import folder, histograms, layout, manifest, schema, sound, spikes, stream
from trainscope.store.histograms import Counted
from trainscope.store.journal_reader import JournalReader
from trainscope.store.layers import name_of
from trainscope.store.points import Points, last_of_each, points
from trainscope.store.warm import WARM

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def is_run(path: Path) -> bool:
    """Tell whether a folder is a recorded run of any version, even one killed before its first flush."""
    if (path / layout.GLOBAL).is_file():
        return True
    return "trainscope_config" in folder.read_json(path / layout.META)


def runs_under(root: Path, *, deepest: int = 3) -> list[Path]:
    """Return the run folders at or below `root`, sorted; nothing is looked for inside a run."""
    if is_run(root):
        return [root]
    if deepest == 0:
        return []
    try:
        inside = sorted(p for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))
    except OSError:
        return []
    return [run for p in inside for run in runs_under(p, deepest=deepest - 1)]


class RunReader:
    """One run directory, read when asked for.

    Attributes
    ----------
    meta : dict
        ``meta.json``, empty if it is missing or broken.
    is_version_1 : bool
        Whether trainscope 1.x wrote it: its step count restarts at 0 on every resume.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.meta: dict[str, Any] = folder.read_json(path / layout.META)
        self.manifest = manifest.load(path)
        self.is_version_1 = "schema_version" not in self.meta and not (path / layout.JOURNAL).is_dir()
        self._journal = JournalReader(path)
        self._files = self._layer_files()
        self._sessions: list[int] | None = None
        self._scalars: pa.Table | None = None

    @property
    def is_torn(self) -> bool:
        """Whether the last flush was cut short by a kill."""
        path = self.path / layout.GLOBAL
        return path.is_file() and stream.is_torn(path)

    def scalars(self) -> pa.Table:
        """Return the global scalars, one row a step, in step order, spike windows merged in."""
        if self._scalars is None:
            known = schema.global_schema()
            parts = [self._table(self.path / layout.GLOBAL)]
            parts += [self._table(spikes.window_path(self.path, w.step)) for w in self.old_windows()]
            found = [schema.conform(part, known) for part in parts if part is not None]
            table = pa.concat_tables(found, promote_options="default") if found else known.empty_table()
            if found and self.is_version_1:
                table = self._renumbered(table)
            self._scalars = table.take(pa.array(last_of_each(table.column("step").to_numpy())))
        return self._scalars

    def resumed_at(self) -> list[int]:
        """Return where later sessions of a version 1 run begin, in continuous steps."""
        return self._offsets()[1:]

    def layers(self) -> tuple[str, ...]:
        """Return the recorded layers in model order."""
        return tuple(dict.fromkeys((*self._files, *self._journal.names())))

    def layer_metrics(self) -> tuple[str, ...]:
        """Return the statistics that some layer may have, known ones first; of a closed run those that one has."""
        if self.manifest.closed and self.manifest.statistics is not None:
            return tuple(sorted(self.manifest.statistics, key=schema.place))
        found = dict.fromkeys(schema.LAYER_COLUMNS)
        for name in list(self._files)[:1]:
            known = stream.schema_of(self.path / layout.LAYERS / self._files[name])
            if known is not None:
                found.update(dict.fromkeys(known.names))
        found.update(dict.fromkeys(self._journal.columns()))
        without = {"step", "layer", *schema.HISTOGRAM_COLUMNS}
        return tuple(name for name in found if name not in without)

    def layer_points(self, layer: str, metric: str) -> Points:
        """Return steps and values of one statistic of one layer where it was recorded, in step order."""
        parts = list(self._layer_parts(layer, metric))
        if not parts:
            return np.zeros(0, np.int64), np.zeros(0)
        step = np.concatenate([p[0] for p in parts])
        value = np.concatenate([p[1] for p in parts])
        order = last_of_each(step)
        return step[order], value[order]

    def layer_histograms(self, layer: str) -> Counted:
        """Return the weight histograms of one layer in step order; the width is that of the newest."""
        return histograms.joined([*map(histograms.of_table, self._tables_of(layer)), *self._journal.histograms(layer)])

    def layer_table(self, layer: str) -> pa.Table:
        """Return every column of one layer's file, histograms too; without what the journal still holds."""
        known = schema.layer_schema(layer)
        file = self._files.get(layer)
        table = None if file is None else self._table(self.path / layout.LAYERS / file)
        table = known.empty_table() if table is None else schema.conform(table, known)
        return self._renumbered(table) if self.is_version_1 and len(table) else table

    def blocks(self) -> tuple[str, ...]:
        """Return the recorded routers and addressors, in the order of their first row."""
        table = self._table(self.path / layout.SHARES, "block")
        return () if table is None else tuple(dict.fromkeys(table.column("block").to_pylist()))

    def shares(self, block: str) -> tuple[IntArray, FloatArray]:
        """Return steps (n,) and shares (n, experts); rows of another width than the last are left out."""
        table = self._table(self.path / layout.SHARES, "block", "shares")
        if table is None:
            return np.zeros(0, np.int64), np.zeros((0, 0))
        if self.is_version_1:
            table = self._renumbered(table, within="block")
        rows = [
            (step, values)
            for step, name, values in zip(
                *(table.column(c).to_pylist() for c in ("step", "block", "shares")), strict=True
            )
            if name == block and values
        ]
        rows = [row for row in rows if len(row[1]) == len(rows[-1][1])]
        if not rows:
            return np.zeros(0, np.int64), np.zeros((0, 0))
        step = np.array([row[0] for row in rows], dtype=np.int64)
        order = last_of_each(step)
        return step[order], np.array([row[1] for row in rows], dtype=float)[order]

    def plugin_metrics(self) -> dict[tuple[str, str], Points]:
        """Return the rows of metric plug-ins by (plugin, metric)."""
        table = self._table(self.path / layout.PLUGINS, "plugin", "metric", "value")
        if table is None:
            return {}
        rows: dict[tuple[str, str], dict[int, float]] = {}
        columns = (table.column(c).to_pylist() for c in ("step", "plugin", "metric", "value"))
        for step, plugin, metric, value in zip(*columns, strict=True):
            rows.setdefault((plugin, metric), {})[step] = np.nan if value is None else value
        return {
            key: (np.array(sorted(found), dtype=np.int64), np.array([found[s] for s in sorted(found)]))
            for key, found in rows.items()
        }

    def old_windows(self) -> list[spikes.Window]:
        """Return the spike windows whose steps the other files have thinned out."""
        settings = self.meta.get("trainscope_config")
        window = settings.get("full_resolution_window") if isinstance(settings, dict) else None
        horizon = self.manifest.last_step - (window if isinstance(window, int) else 0)
        return [w for w in self.manifest.windows if w.first <= horizon]

    def _layer_parts(self, layer: str, metric: str) -> Iterator[Points]:
        for table in self._tables_of(layer):
            yield from points(table, metric)
        yield from self._journal.points(layer, metric)

    def _tables_of(self, layer: str) -> list[pa.Table]:
        """Return a layer's rows in old spike windows, then in its own file."""
        kept = WARM.of(self)
        if layer not in kept:
            file = self._files.get(layer)
            homes = [] if file is None else [spikes.layers_path(self.path, w.step) / file for w in self.old_windows()]
            tables = [table for path in homes if (table := self._table(path)) is not None]
            own = None if file is None else self._table(self.path / layout.LAYERS / file)
            if own is not None:
                tables.append(self._renumbered(own) if self.is_version_1 and len(own) else own)
            WARM.keep(layer, tables)
            return tables
        return kept[layer]

    def _layer_files(self) -> dict[str, str]:
        """Return layer to file: as the manifest has it, then what else is there."""
        home = self.path / layout.LAYERS
        on_disk = sorted(p.name for p in home.glob("*" + layout.SUFFIX)) if home.is_dir() else []
        found = dict(self.manifest.layers)
        listed = set(found.values())
        for file in on_disk:
            if file not in listed:
                name = name_of(home / file)
                found.setdefault(unquote(file.removesuffix(layout.SUFFIX)) if name is None else name, file)
        return found

    def _table(self, path: Path, *needed: str) -> pa.Table | None:
        table = stream.read(path) if path.is_file() else None
        table = None if table is None else sound.part_of(table)
        return None if table is None or not set(needed) <= set(table.schema.names) else table

    def _offsets(self) -> list[int]:
        """Return what to add to the steps of each session of a version 1 run."""
        if self._sessions is None:
            table = self._table(self.path / layout.GLOBAL) if self.is_version_1 else None
            step = np.zeros(0, np.int64) if table is None else table.column("step").to_numpy()
            starts = np.flatnonzero(step[1:] <= step[:-1]) + 1
            self._sessions = [0]
            for start in starts:
                self._sessions.append(self._sessions[-1] + int(step[start - 1]) + 1)
        return self._sessions

    def _renumbered(self, table: pa.Table, within: str | None = None) -> pa.Table:
        """Let the steps of a version 1 table go on where they restarted.

        With `within`, a restart is a step below the one before; several rows may share a step.
        """
        step = table.column("step").to_numpy()
        restart = step[1:] < step[:-1] if within else step[1:] <= step[:-1]
        session = np.concatenate(([0], np.cumsum(restart)))
        offsets = np.array(self._offsets(), dtype=np.int64)
        step = step + offsets[np.minimum(session, len(offsets) - 1)]
        at = table.schema.get_field_index("step")
        return table.set_column(at, table.schema.field(at), pa.array(step))
