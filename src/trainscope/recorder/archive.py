"""Where steps go: the run's folder, if it could be made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from trainscope.core.config import TrainScopeConfig
from trainscope.core.errors import StoreError
from trainscope.probe import Boundary, Reading
from trainscope.recorder import ranks, snapshot
from trainscope.recorder.live import Live
from trainscope.recorder.row import Row
from trainscope.store.block import FloatArray, LayerBlock
from trainscope.store.writer import RunWriter


class Archive:
    """Stores rows, generator states and checkpoints; where the folder cannot be made, nowhere.

    Parameters
    ----------
    config : TrainScopeConfig
    boundary : Boundary
        Gets what goes wrong with disk and remote store.
    about : mapping
        Goes to ``meta.json``.

    Raises
    ------
    ConfigError
        If settings contradict each other.
    """

    def __init__(self, config: TrainScopeConfig, boundary: Boundary, about: Mapping[str, Any]) -> None:
        self._boundary = boundary
        self.writer: RunWriter | None = None
        try:
            self.writer = RunWriter.create(
                config,
                meta=about,
                rank=ranks.rank_of(config),
                report=lambda error: boundary.note("store", error),
            )
        except StoreError as error:
            boundary.note("store", error)
        self.next_step = 0 if self.writer is None else self.writer.next_step
        """Of a resumed run, one after its last step."""

    @property
    def path(self) -> Path | None:
        """The run's folder; None if it could not be made."""
        return None if self.writer is None else self.writer.path

    @property
    def histogram_edges(self) -> Mapping[str, FloatArray]:
        """Edges that the layers of a resumed run have had so far."""
        return {} if self.writer is None else self.writer.histogram_edges

    def refill(self, live: Live, before: int) -> None:
        """Show the live detectors of a resumed run what was recorded before the step `before`."""
        if self.writer is not None:
            losses, shares = self.writer.last_values(before, live.memory)
            live.refill(losses, shares)

    def store(self, row: Row, scalars: Mapping[str, Any], reading: Reading) -> None:
        """Append one step, and mark its spike."""
        if self.writer is None:
            return
        shares = {name: share.numpy() for name, share in reading.shares.items()}
        self.writer.append(row.step, scalars, block(reading), shares, row.plugin_rows)
        if row.spike is not None:
            self.writer.mark_spike(row.step, row.spike.score)

    def save_rng(self, row: Row) -> None:
        """Save the generators as they were before the step's forward."""
        if self.writer is not None:
            path = self.writer.rng_path(row.step)
            snapshot.save_rng_state(path, row.random, step=row.step, batch_index=row.batch_index)

    def save_checkpoint(
        self, row: Row, model: nn.Module, optimizers: Sequence[torch.optim.Optimizer], *, now: int
    ) -> None:
        """Save model and optimizers as they are at the step `now`, for the spike of `row`."""
        if self.writer is not None:
            path = self.writer.checkpoint_path(row.step)
            # On an accelerator the spike may be known late: the weights are those of now.
            snapshot.save_checkpoint(path, model, optimizers, step=now, batch_index=row.batch_index)

    def flush(self) -> None:
        """Write what is buffered."""
        if self.writer is not None:
            self._boundary.call("store", self.writer.flush)

    def work(self) -> None:
        """Go on a little with what waits on disk."""
        if self.writer is not None:
            self._boundary.call("store", self.writer.work)

    def close(self) -> None:
        """Close the run."""
        if self.writer is not None:
            self._boundary.call("store", self.writer.close)


def block(reading: Reading) -> LayerBlock | None:
    """Return the layer statistics as arrays, None where the step has none."""
    if not reading.columns:
        return None
    histograms = reading.histograms
    return LayerBlock(
        reading.names,
        {name: column.numpy() for name, column in reading.columns.items()},
        {name: mask.numpy() for name, mask in reading.valid.items()},
        None if histograms is None else (histograms[0].numpy(), histograms[1].numpy()),
    )
