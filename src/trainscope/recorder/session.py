"""One recording, from attaching to detaching: what the probe saw, judged and stored."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from trainscope.core.config import TrainScopeConfig
from trainscope.core.errors import StoreError
from trainscope.probe import Boundary, Measurement, Probe, Reading
from trainscope.probe.process import cpu_memory_mb, cuda_memory_mb
from trainscope.recorder import ranks, snapshot
from trainscope.recorder.live import Live, Spike
from trainscope.recorder.plugins import MetricPlugin
from trainscope.store.block import LayerBlock
from trainscope.store.writer import FLUSH_SECONDS, FLUSH_STEPS, RunWriter

EMPTY = Reading({}, (), {}, {}, None, {}, {})
DEFERRED_STEPS = FLUSH_STEPS
"""Steps that wait to be stored together: on an accelerator one transfer, anywhere one piece of arithmetic."""


@dataclass(slots=True, eq=False)
class Row:
    """A step that is measured, and not yet stored."""

    step: int
    measurement: Measurement
    batch_index: int | None
    random: dict[str, Any]
    """State of the generators before the step's forward."""
    loss: float | None = None
    """None while it is a tensor among the measurement's vectors."""
    scalars: dict[str, float | int | bool | None] = field(default_factory=dict)
    plugin_rows: list[tuple[str, str, float]] = field(default_factory=list)
    spike: Spike | None = None
    loss_judged: bool = False
    rest_judged: bool = False


class Session:
    """What `TrainScope` does while it is attached.

    Rows are stored ``DEFERRED_STEPS`` at a time, and at the earliest one step late, when it is known what their
    optimizer step changed.

    Raises
    ------
    ConfigError
        If settings contradict each other.
    """

    def __init__(
        self,
        config: TrainScopeConfig,
        probe: Probe,
        model: nn.Module,
        optimizers: Sequence[torch.optim.Optimizer],
        metrics: Sequence[MetricPlugin],
        live: Live,
        boundary: Boundary,
    ) -> None:
        self._config, self._probe, self._model, self._optimizers = config, probe, model, optimizers
        self._metrics, self._live, self._boundary = metrics, live, boundary
        self._rows: list[Row] = []
        self._news: list[dict[str, Any]] = []
        self._stopped = False
        self._stored_at = time.monotonic()
        self.writer = self._create()
        self._next = self.writer.next_step if self.writer is not None else 0
        self.last_step = self._next - 1

    @property
    def path(self) -> Path | None:
        """The run's folder; None if it could not be made."""
        return self.writer.path if self.writer is not None else None

    def _create(self) -> RunWriter | None:
        meta = self._boundary.call("meta", describe, self._model, self._optimizers) or {}
        try:
            return RunWriter.create(self._config, meta=meta, rank=ranks.rank_of(self._config))
        except StoreError as error:
            self._boundary.note("store", error)
            return None

    def step(
        self,
        loss: float | Tensor,
        batch_index: int | None,
        *,
        step: int | None,
        scaler: Any,
        clipped: float | Tensor | None,
    ) -> dict[str, Any] | None:
        """Measure, judge and store; return the oldest spike not yet reported."""
        number = self._next if step is None else int(step)
        self._next, self.last_step = number + 1, number
        random = self._probe.forwards.random_state()
        row = Row(number, self._probe.measure(scaler), batch_index, random)
        self._rows.append(row)
        self._take(row, loss, clipped)
        self._boundary.call("plug-in", self._compute, row)
        if self._config.rng_every_n_steps and number % self._config.rng_every_n_steps == 0:
            self._boundary.call("rng state", self._save_rng, row)
        waits = self._probe.statistics.deferred and not self._config.stop_on_spike
        if row.loss is not None:
            self._judge_loss(row, row.loss)
        if not waits:
            self._judge_now(row)
        self._store_due()
        return self._news.pop(0) if self._news else None

    def _store_due(self) -> None:
        """Store what has waited long enough; all of it once a spike is complete, so that it survives what follows."""
        spiked = len(self._rows) > 1 and self._rows[-2].spike is not None
        waited = time.monotonic() - self._stored_at > FLUSH_SECONDS
        if len(self._rows) > DEFERRED_STEPS or waited or spiked:
            self._boundary.call("store", self._drain, keep=1)

    def stop(self) -> None:
        """Note that the optimizer step of the last step will not happen."""
        self._stopped = True

    def close(self) -> None:
        """Take the hooks away, store what is left, close the run; faults stay inside."""
        if not self._stopped:
            self._boundary.call("statistics", self._probe.settle)
        self._boundary.call("detach", self._probe.detach)
        self._boundary.call("store", self._drain, keep=0)
        if self.writer is not None:
            self._boundary.call("store", self.writer.close)

    def _take(self, row: Row, loss: float | Tensor, clipped: float | Tensor | None) -> None:
        """Note loss, memory and time; tensors of an accelerator join the measurement."""
        vectors = row.measurement.vectors
        for name, value in (("loss", loss), ("norm_after_clip", clipped)):
            if isinstance(value, Tensor):
                vectors[name] = whole(value).detach().reshape(-1)[:1].clone()
        if not isinstance(loss, Tensor):
            row.loss = float(loss)
        elif vectors["loss"].device.type == "cpu":
            row.loss = vectors["loss"].double().tolist()[0]
        if clipped is not None and not isinstance(clipped, Tensor):
            row.scalars["grad_norm_after_clip"] = float(clipped)
        row.scalars["wall_time"] = time.time()
        if self._config.track_memory:
            row.scalars["cpu_memory_mb"] = cpu_memory_mb()
            row.scalars["cuda_memory_mb"] = cuda_memory_mb()

    def _compute(self, row: Row) -> None:
        optimizer: Any = self._optimizers[0] if len(self._optimizers) == 1 else list(self._optimizers)
        for plugin in self._metrics if row.measurement.layers else ():
            name = plugin.name
            values = self._boundary.call(f"plug-in {name}", plugin.compute, self._model, optimizer, row.step)
            row.plugin_rows += [(name, str(k), float(v)) for k, v in (values or {}).items()]

    def _judge_now(self, row: Row) -> None:
        """Judge a step whose numbers are at hand, or whose loss the user wants to wait for."""
        peek = self._probe.peek(row.measurement, ("loss",))
        if row.loss is None and "loss" in peek.vectors:
            row.loss = peek.vectors["loss"].tolist()[0]
            self._judge_loss(row, row.loss)
        self._judge_rest(row, peek.grad_norm, peek.shares)

    def _judge_loss(self, row: Row, loss: float) -> None:
        if not row.loss_judged:
            row.loss_judged = True
            self._alarm(row, self._live.judge_loss(loss))

    def _judge_rest(self, row: Row, grad_norm: float | None, shares: Mapping[str, float]) -> None:
        if row.rest_judged:
            return
        row.rest_judged = True
        scaled = row.measurement.scale is not None or "scale" in row.measurement.vectors
        # With a loss scale, overflowing gradients are how the scaler finds its scale; it skips that step.
        self._alarm(row, self._live.judge_rest(None if scaled else grad_norm, shares, self._probe.addressors))

    def _alarm(self, row: Row, spike: Spike | None) -> None:
        if spike is None or row.spike is not None:
            return
        row.spike = spike
        self._news.append(
            {
                "step": row.step,
                "loss": row.loss,
                "spike_score": spike.score,
                "z_score": spike.score,
                "detector": spike.detector,
                "batch_index": row.batch_index,
            }
        )
        self._boundary.call("rng state", self._save_rng, row)
        if self._config.checkpoint_on_spike:
            self._boundary.call("checkpoint", self._save_checkpoint, row)

    def _save_rng(self, row: Row) -> None:
        if self.writer is not None:
            path = self.writer.rng_path(row.step)
            snapshot.save_rng_state(path, row.random, step=row.step, batch_index=row.batch_index)

    def _save_checkpoint(self, row: Row) -> None:
        if self.writer is not None:
            path = self.writer.checkpoint_path(row.step)
            # On an accelerator the spike may be known late: the weights are those of now.
            snapshot.save_checkpoint(
                path, self._model, self._optimizers, step=self.last_step, batch_index=row.batch_index
            )

    def _drain(self, *, keep: int) -> None:
        """Store all rows but the newest `keep`."""
        count = len(self._rows) - keep
        if count <= 0:
            return
        rows, self._rows = self._rows[:count], self._rows[count:]
        self._stored_at = time.monotonic()
        readings = self._boundary.call("reading", self._probe.read, [r.measurement for r in rows])
        if readings is None or len(readings) < len(rows):
            readings = [EMPTY] * len(rows)
        for row, reading in zip(rows, readings, strict=True):
            self._boundary.call("store", self._store, row, reading)
        if self.writer is not None:
            self._boundary.call("store", self.writer.flush)

    def _store(self, row: Row, reading: Reading) -> None:
        scalars = {**reading.scalars, **row.scalars}
        loss = row.loss if row.loss is not None else reading.extra.get("loss")
        if loss is not None:
            self._judge_loss(row, loss)
        norm = scalars.get("grad_norm_before_clip")
        self._judge_rest(row, norm, {name: share.max().tolist() for name, share in reading.shares.items()})
        if "norm_after_clip" in reading.extra:
            scalars["grad_norm_after_clip"] = reading.extra["norm_after_clip"]
        scalars["loss"] = loss
        scalars["batch_index"] = row.batch_index
        scalars["is_spike"] = row.spike is not None
        scalars["spike_score"] = None if row.spike is None else row.spike.score
        if self.writer is None:
            return
        shares = {name: share.numpy() for name, share in reading.shares.items()}
        self.writer.append(row.step, scalars, block(reading), shares, row.plugin_rows)
        if row.spike is not None:
            self.writer.mark_spike(row.step, row.spike.score)


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


def whole(value: Tensor) -> Tensor:
    """Return a loss that is a DTensor as a plain tensor."""
    full = getattr(value, "full_tensor", None)
    return value if full is None else full()


def describe(model: nn.Module, optimizers: Sequence[torch.optim.Optimizer]) -> dict[str, Any]:
    """Return what ``meta.json`` says about the training."""
    config = getattr(model, "config", None)
    as_dict = getattr(config, "to_dict", None)
    return {
        "model_name": type(getattr(model, "_orig_mod", model)).__name__,
        "model_config": as_dict() if callable(as_dict) else {},
        "parameters": sum(p.numel() for p in model.parameters() if not is_lazy(p)),
        "optimizers": [
            {
                "name": type(optimizer).__name__,
                "groups": [
                    {k: v for k, v in group.items() if isinstance(v, (int, float, str, bool, type(None)))}
                    for group in optimizer.param_groups
                ],
            }
            for optimizer in optimizers
        ],
        "torch_version": str(torch.__version__),
        "python_version": platform.python_version(),
        "cuda_device": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }
