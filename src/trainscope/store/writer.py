"""Writes a recorded run, so that it reads back whatever happens to the process."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trainscope.core.config import TrainScopeConfig
from trainscope.core.errors import StoreError
from trainscope.store import folder, layout, manifest, stream
from trainscope.store.block import FloatArray, LayerBlock
from trainscope.store.layer_log import LayerLog
from trainscope.store.mirror import Mirror, Report
from trainscope.store.tables import PluginRow, Scalar, StepTables
from trainscope.store.upkeep import Upkeep

FLUSH_STEPS = 10
"""Steps that a kill may lose at most."""
FLUSH_SECONDS = 2.0
"""Or this much time, where steps are slow."""
WORK_SECONDS = 0.02
"""Time that one turn of folding, thinning and writing windows takes, and the length of one piece more."""

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

    def __init__(
        self,
        path: Path,
        config: TrainScopeConfig,
        meta: Mapping[str, Any],
        *,
        resumed: bool,
        report: Report | None = None,
    ) -> None:
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
        self._upkeep = Upkeep(path, config, self._tables, self._layers)
        self._flushed_at = time.monotonic()
        uri = config.storage_uri
        self._mirror = None if uri is None else Mirror(uri, path, resumed=resumed, report=report)
        self._mirrored_step = 0
        for name in (layout.LAYERS, layout.JOURNAL, layout.SPIKES):
            with stream.writing(path / name):
                (path / name).mkdir(exist_ok=True)
        self.histogram_edges: Mapping[str, FloatArray] = self._layers.store.edges
        if resumed:
            self._upkeep.adopt()
            self.next_step = self._mirrored_step = self._upkeep.newest + 1
        else:
            folder.write_json(path / layout.META, manifest.meta(path.name, config, meta), indent=1)
        self._upkeep.write_manifest()

    @classmethod
    def create(
        cls,
        config: TrainScopeConfig,
        *,
        meta: Mapping[str, Any],
        rank: int | None = None,
        report: Report | None = None,
    ) -> RunWriter:
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
        report : callable, optional
            Gets the first `RemoteError` of a copy to ``storage_uri``, from a thread; the last one is
            raised by `close` in any case.

        Raises
        ------
        StoreError
            If the folder cannot be made, or a resumed run is still being written by another process.
        ConfigError
            If ``resume`` is set without a ``run_name``.
        """
        path, resumed = folder.claim(config, config.rank if rank is None else rank)
        return cls(path, config, meta, resumed=resumed, report=report)

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
            self._end_window()
            self._upkeep.rewind(step)
        row = {"step": step, **scalars}
        self._tables.add(row, shares or {}, plugin_rows)
        self._upkeep.windows.see([row])
        self.next_step, self._upkeep.newest = step + 1, step
        if layers is not None:
            self._layers.add(step, layers)
        if self._upkeep.windows.is_complete():
            self._end_window()
            self._copy_to_remote()
        elif len(self._tables) >= FLUSH_STEPS or time.monotonic() - self._flushed_at > FLUSH_SECONDS:
            self.flush()

    def mark_spike(self, step: int, score: float) -> None:
        """Ask for the window around `step`, which must be the step appended last.

        Flushes at once. ``spikes/spike_step_<N>.arrow`` and ``spikes/spike_step_<N>_layers/`` are begun
        when the ``spike_window_after`` steps after it have been appended, written a little at each flush
        and `work`, and whole at `close`. A spike inside the window of an earlier one is noted in that window
        instead of opening its own.
        """
        self._upkeep.windows.mark(step, score)
        if self._upkeep.windows.is_complete():
            self._end_window()
        else:
            self.flush()

    def last_values(self, before: int, count: int) -> tuple[list[float], dict[str, list[float]]]:
        """Return losses, and largest shares by router or addressor, of the last `count` steps before `before`."""
        return self._tables.last_losses(before, count), self._tables.last_shares(before, count)

    def rng_path(self, step: int) -> Path:
        """Return where the RNG state taken before `step` goes; its folder exists."""
        return stream.place(layout.rng_state(self.path, step))

    def checkpoint_path(self, step: int) -> Path:
        """Return where the checkpoint of `step` goes: as a ``checkpoint_on_spike`` template says.

        Write to ``path.with_name(path.name + ".part")`` and rename, so that no half checkpoint is left.
        """
        return stream.place(layout.checkpoint(self.path, step, self._config.checkpoint_on_spike))

    def flush(self) -> None:
        """Write what is buffered; after this a kill loses nothing appended so far. Does one turn of `work`."""
        begun = time.perf_counter()
        self._save()
        self.work(WORK_SECONDS - (time.perf_counter() - begun))
        if self.next_step - self._mirrored_step >= self._config.compaction_every_n_steps:
            self._copy_to_remote()

    def work(self, seconds: float = WORK_SECONDS) -> None:
        """Go on with what waits: windows to write, segments to fold, files to thin.

        Call it at training steps without a flush, where there are thousands of layers; `flush` does one turn
        by itself, which is enough for hundreds.
        """
        self._upkeep.work(seconds)

    def _save(self) -> None:
        self._flushed_at = time.monotonic()
        try:
            self._tables.flush()
        finally:
            self._layers.flush()

    def close(self) -> None:
        """Flush, finish open spike windows, write the per-layer files and the manifest. Idempotent."""
        if self._closed:
            return
        self._closed = True
        failures = []
        try:
            # Each is tried even if one before it failed: what can be saved is saved.
            for act in (self._end_window, self._upkeep.finish, self._upkeep.close, self._close_remote):
                try:
                    act()
                except StoreError as error:
                    failures.append(error)
        finally:
            self._lock.release()
        if failures:
            raise failures[0]

    def _end_window(self) -> None:
        """Save everything, and begin to write the open window, if there is one."""
        try:
            self._save()
        finally:
            self._upkeep.end_window()
        self.work()

    def _copy_to_remote(self) -> None:
        if self._mirror is not None:
            self._mirrored_step = self.next_step
            self._mirror.request()

    def _close_remote(self) -> None:
        if self._mirror is not None:
            self._mirror.close()
