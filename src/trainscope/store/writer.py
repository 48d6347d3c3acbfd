"""Writes a recorded run, so that it reads back whatever happens to the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trainscope.store.block import LayerBlock

if TYPE_CHECKING:
    from trainscope.core.config import TrainScopeConfig


class RunWriter:
    """One run directory, open for writing. Not thread-safe; one object a rank.

    Every method that touches the disk raises :class:`~trainscope.core.errors.StoreError` (and nothing else) when the
    disk is full, the folder has gone, or the remote store does not answer. The rows of the failed flush are
    dropped; later calls may be made and work again once the cause has gone.

    Attributes
    ----------
    path : Path
        The run's folder, which this object made (or resumed).
    next_step : int
        0 for a new run, one after the last recorded step for a resumed one, and after every append one
        after that step. Use it where the user gives no step number.
    """

    path: Path
    next_step: int

    @classmethod
    def create(
        cls, config: TrainScopeConfig, *, meta: Mapping[str, Any], rank: int | None = None
    ) -> RunWriter:
        """Make (or with ``config.resume`` reopen) the folder of a run.

        Parameters
        ----------
        config : TrainScopeConfig
            Uses run_dir, run_name, rank, resume, the window and compaction fields and storage_uri.
        meta : mapping
            Written to ``meta.json`` beside the configuration (model class, parameter count, library
            versions, ...). JSON types only; non-finite numbers become strings.
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
        raise NotImplementedError

    def append(
        self,
        step: int,
        scalars: Mapping[str, float | int | bool | None],
        layers: LayerBlock | None = None,
        shares: Mapping[str, NDArray[np.floating[Any]]] | None = None,
        plugin_rows: Sequence[tuple[str, str, float]] = (),
    ) -> None:
        """Buffer one step; flushes by itself every ``FLUSH_STEPS`` steps or ``FLUSH_SECONDS``.

        A `step` at or before the last one is a rewind: the recorded steps from there on are dropped first.

        Parameters
        ----------
        scalars : mapping
            Column of ``global.arrow`` to its value; None or absent is null. Known names:
            :data:`trainscope.store.schema.SCALAR_COLUMNS`; an unknown one becomes a new nullable float column.
        layers : LayerBlock, optional
            Arrays are copied before this returns.
        shares : mapping, optional
            Router or addressor name to its (experts,) shares.
        plugin_rows : sequence of (plugin, metric, value)
        """
        raise NotImplementedError

    def mark_spike(self, step: int, score: float) -> None:
        """Ask for the window around `step`, which must be the step appended last.

        Flushes at once. ``spikes/spike_step_<N>.arrow`` and ``spikes/spike_step_<N>_layers/`` are written when the
        ``spike_window_after`` steps after it have been appended, or at `close`. A spike inside the window of
        an earlier one is noted in that window instead of opening its own.
        """
        raise NotImplementedError

    def rng_path(self, step: int) -> Path:
        """Return where the RNG state taken before `step` goes; its folder exists."""
        raise NotImplementedError

    def checkpoint_path(self, step: int) -> Path:
        """Return where the checkpoint of `step` goes; honours a ``checkpoint_on_spike`` template.

        Write to ``path.with_name(path.name + ".part")`` and rename, so that no half checkpoint is left.
        """
        raise NotImplementedError

    def flush(self) -> None:
        """Write what is buffered; after this a kill loses nothing appended so far."""
        raise NotImplementedError

    def close(self) -> None:
        """Flush, finish open spike windows, write the per-layer files and the manifest. Idempotent."""
        raise NotImplementedError
