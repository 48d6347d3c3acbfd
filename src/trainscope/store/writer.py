"""Writes a recorded run, so that it reads back whatever happens to the process."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trainscope.core.config import TrainScopeConfig
from trainscope.core.errors import StoreError
from trainscope.store import folder, layout, manifest, remote, spikes, stream
from trainscope.store.block import FloatArray, LayerBlock
from trainscope.store.layer_log import LayerLog
from trainscope.store.tables import PluginRow, Scalar, StepTables

FLUSH_STEPS = 10
"""Steps that a kill may lose at most."""
FLUSH_SECONDS = 2.0
"""Or this much time, where steps are slow."""

Shares = Mapping[str, NDArray[np.floating[Any]]]


class RunWriter:
    """One run directory, open for writing. Not thread-safe; one object a rank.

    Every method that touches the disk raises :class:`~trainscope.core.errors.StoreError` (and nothing else)
    when the disk is full, the folder has gone, or the remote store does not answer. The rows of the
    failed flush are dropped; later calls may be made and work again once the cause has gone.

    Make one with :meth:`create`.

    Attributes
    ----------
    path : Path
        The run's folder, which this object made (or resumed).
    next_step : int
        0 for a new run, one after the last recorded step for a resumed one, and after every append one
        after that step. Use it where the user gives no step number.
    histogram_edges : mapping of str to (bins + 1,) array
        Of a resumed run: the edges its layers have had so far. Use them again, or histograms before and
        after the resume cannot be compared.
    """

    def __init__(self, path: Path, config: TrainScopeConfig, meta: Mapping[str, Any], *, resumed: bool) -> None:
        self.path, self.next_step = path, 0
        self._config = config
        self._lock = folder.RunLock(path)
        pa.array([0])  # Arrow looks for pandas at its first array: 0.3 s that no training step should pay
        self._closed = False
        window, factor = config.full_resolution_window, config.decimation_factor
        self._tables = StepTables(path, window=window, factor=factor)
        self._layers = LayerLog(
            path,
            window=window,
            factor=factor,
            compaction=config.compaction_every_n_steps,
            flush_steps=FLUSH_STEPS,
        )
        self._recent: deque[Mapping[str, Scalar]] = deque(
            maxlen=config.spike_window_before + config.spike_window_after + 1
        )
        self._open: spikes.Window | None = None
        self._manifest = manifest.Manifest()
        self._flushed_at = time.monotonic()
        self._mirror = remote.mirror(config.storage_uri, path, resumed=resumed)
        self._mirrored_step = 0
        for name in (layout.LAYERS, layout.JOURNAL, layout.SPIKES):
            with stream.writing(path / name):
                (path / name).mkdir(exist_ok=True)
        self.histogram_edges: Mapping[str, FloatArray] = self._layers.store.edges
        if resumed:
            self._adopt()
        else:
            folder.write_json(path / layout.META, manifest.meta(path.name, config, meta), indent=1)
        self._write_manifest()

    @classmethod
    def create(cls, config: TrainScopeConfig, *, meta: Mapping[str, Any], rank: int | None = None) -> RunWriter:
        """Make (or with ``config.resume`` reopen) the folder of a run.

        Parameters
        ----------
        config : TrainScopeConfig
            Uses run_dir, run_name, rank, resume, the window and compaction fields and storage_uri.
        meta : mapping
            Goes to ``meta.json`` beside the configuration; JSON types, non-finite numbers become strings.
        rank : int, optional
            Of this process; gives the suffix ``_rank<N>``. Defaults to ``config.rank``. Ranks must agree on
            ``config.run_name`` beforehand (a missing name is taken from the clock).

        Raises
        ------
        StoreError
            If the folder cannot be made, or a resumed run is still being written by another process.
        ConfigError
            If ``resume`` is set without a ``run_name``.
        """
        path, resumed = folder.claim(config, config.rank if rank is None else rank)
        return cls(path, config, meta, resumed=resumed)

    def append(
        self,
        step: int,
        scalars: Mapping[str, Scalar],
        layers: LayerBlock | None = None,
        shares: Shares | None = None,
        plugin_rows: Sequence[PluginRow] = (),
    ) -> None:
        """Buffer one step; flushes by itself every ``FLUSH_STEPS`` steps or ``FLUSH_SECONDS``.

        A `step` at or before the last one is a rewind: the recorded steps from there on are dropped first.

        Parameters
        ----------
        scalars : mapping
            Column of ``global.arrow`` to its value; None or absent is null. Known names:
            :data:`trainscope.store.schema.SCALAR_COLUMNS`; an unknown one becomes a new nullable float.
        layers : LayerBlock, optional
            Arrays are copied before this returns.
        shares : mapping, optional
            Router or addressor name to its (experts,) shares.
        plugin_rows : sequence of (plugin, metric, value)
        """
        if step < self.next_step:
            self._rewind(step)
        row = {"step": step, **scalars}
        self._tables.add(row, shares or {}, plugin_rows)
        self._recent.append(row)
        self.next_step = step + 1
        if layers is not None:
            self._layers.add(step, layers)
        if self._open is not None and step >= self._open.last:
            self._finish_window()
            self._copy_to_remote()
        elif len(self._tables) >= FLUSH_STEPS or time.monotonic() - self._flushed_at > FLUSH_SECONDS:
            self.flush()

    def mark_spike(self, step: int, score: float) -> None:
        """Ask for the window around `step`, which must be the step appended last.

        Flushes at once. ``spikes/spike_step_<N>.arrow`` and ``spikes/spike_step_<N>_layers/`` are written
        when the ``spike_window_after`` steps after it have been appended, or at `close`. A spike inside
        the window of an earlier one is noted in that window instead of opening its own.
        """
        if self._open is not None:
            self._open.also.append(step)
            return
        before, after = self._config.spike_window_before, self._config.spike_window_after
        self._open = spikes.Window(step, score, step - before, step + after)
        if after == 0:
            self._finish_window()
        else:
            self.flush()

    def rng_path(self, step: int) -> Path:
        """Return where the RNG state taken before `step` goes; its folder exists."""
        return stream.place(layout.rng_state(self.path, step))

    def checkpoint_path(self, step: int) -> Path:
        """Return where the checkpoint of `step` goes: as a ``checkpoint_on_spike`` template says.

        Write to ``path.with_name(path.name + ".part")`` and rename, so that no half checkpoint is left.
        """
        return stream.place(layout.checkpoint(self.path, step, self._config.checkpoint_on_spike))

    def flush(self) -> None:
        """Write what is buffered; after this a kill loses nothing appended so far."""
        self._flushed_at = time.monotonic()
        try:
            self._tables.flush()
        finally:
            self._layers.flush()
        if self._layers.fold(self.next_step - 1):
            self._write_manifest()
        if self.next_step - self._mirrored_step >= self._config.compaction_every_n_steps:
            self._copy_to_remote()

    def close(self) -> None:
        """Flush, finish open spike windows, write the per-layer files and the manifest. Idempotent."""
        if self._closed:
            return
        self._closed = True
        failures = []
        # Each is tried even if one before it failed: what can be saved is saved.
        for act in (self._finish_window, self.flush, self._finish, self._copy_to_remote):
            try:
                act()
            except StoreError as error:
                failures.append(error)
        self._lock.release()
        if failures:
            raise failures[0]

    def _finish(self) -> None:
        self._layers.fold(self.next_step - 1, everything=True)
        self._manifest.closed = True
        self._write_manifest()

    def _finish_window(self) -> None:
        """Write the open window, if there is one, with the steps there are."""
        self.flush()
        window, self._open = self._open, None
        if window is None:
            return
        window.last = min(window.last, self.next_step - 1)
        rows = [row for row in self._recent if window.first <= int(row["step"] or 0) <= window.last]
        spikes.write_window(self.path, window, self._tables.batch(rows), self._layers.store)
        for step in self._manifest.add_window(window):
            spikes.remove_window(self.path, step)
        self._write_manifest()

    def _rewind(self, step: int) -> None:
        """Drop the recorded steps from `step` on: training goes through them again."""
        self._finish_window()
        self._tables.drop_from(step)
        self._layers.drop_from(step)
        spikes.set_aside(self.path, *self._manifest.rewind(step, self.next_step - 1))
        kept = [row for row in self._recent if int(row["step"] or 0) < step]
        self._recent.clear()
        self._recent.extend(kept)
        self._write_manifest()

    def _adopt(self) -> None:
        """Go on where an earlier session ended, whichever way it ended."""
        self._manifest = manifest.load(self.path)
        self._recent.extend(self._tables.adopt(self._recent.maxlen or 0))
        self._layers.adopt(self._manifest.layers)
        # A killed session may have written more than its manifest says.
        known = self._manifest.statistics if self._manifest.closed else None
        self._layers.statistics = None if known is None else dict.fromkeys(known)
        self.next_step = max(self._tables.last_step, self._layers.last_step) + 1
        self._mirrored_step = self.next_step
        self._manifest.closed = False

    def _write_manifest(self) -> None:
        self._manifest.last_step = self.next_step - 1
        self._manifest.layers = self._layers.store.files.items()
        self._manifest.statistics = None if self._layers.statistics is None else list(self._layers.statistics)
        folder.write_json(self.path / layout.MANIFEST, self._manifest.to_dict())

    def _copy_to_remote(self) -> None:
        if self._mirror is not None:
            self._mirrored_step = self.next_step
            self._mirror.sync()
