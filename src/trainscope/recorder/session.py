"""One recording, from attaching to detaching: the order of what happens at a step."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trainscope.core.config import TrainScopeConfig
from trainscope.probe import Boundary, Probe, Reading
from trainscope.probe.process import cpu_memory_mb, cuda_memory_mb
from trainscope.recorder.about import describe
from trainscope.recorder.archive import Archive
from trainscope.recorder.judge import Judge, news_of
from trainscope.recorder.live import Live
from trainscope.recorder.outlets import Outlets
from trainscope.recorder.placement import Placement
from trainscope.recorder.plugins import MetricPlugin
from trainscope.recorder.row import Row
from trainscope.store.writer import FLUSH_SECONDS, FLUSH_STEPS

_LOG = logging.getLogger("trainscope")
EMPTY = Reading({}, (), {}, {}, None, {}, {})
DEFERRED_STEPS = FLUSH_STEPS
"""Steps that wait to be stored together: on an accelerator one transfer, anywhere one piece of arithmetic."""


class Session:
    """What `TrainScope` does while it is attached.

    Rows are stored ``DEFERRED_STEPS`` at a time, and at the earliest one step late, when it is known what
    their optimizer step changed.

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
        optimizers: tuple[torch.optim.Optimizer, ...],
        metrics: Sequence[MetricPlugin],
        live: Live,
        outlets: Outlets,
        boundary: Boundary,
    ) -> None:
        self._config, self._probe, self._model, self._optimizers = config, probe, model, optimizers
        self._metrics, self._live, self._outlets, self._boundary = metrics, live, outlets, boundary
        self._rows: list[Row] = []
        self._placement = Placement()
        boundary.call("placement", self._placement.check_optimizers, model, optimizers)
        self._stopped = self._told_rewind = False
        self._process = os.getpid()
        self._stored_at = time.monotonic()
        self._archive = Archive(config, boundary, boundary.call("meta", describe, model, optimizers) or {})
        self._judge = Judge(live, self._save_spike)
        self._next = self._archive.next_step
        self._resumes = self._next > 0
        self.last_step = self._next - 1
        probe.keep_edges({name: edges.tolist() for name, edges in self._archive.histogram_edges.items()})

    @property
    def path(self) -> Path | None:
        """The run's folder; None if it could not be made."""
        return self._archive.path

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
        if os.getpid() != self._process:
            return None  # a fork: the run is its parent's
        number = self._next if step is None else step
        if self._resumes:
            self._resumes = False
            self._boundary.call("resume", self._archive.refill, self._live, number)
        elif number <= self.last_step:
            self._tell_rewind(number)
        if self._probe.has_changed():
            self._begin_anew(self._optimizers)
        self._next, self.last_step = number + 1, number
        random = self._probe.forwards.random_state()
        row = Row(number, self._probe.measure(scaler), batch_index, random)
        self._rows.append(row)
        self._boundary.call("placement", self._placement.check, self._probe, row.measurement, number)
        self._take(row, loss, clipped)
        self._boundary.call("plug-in", self._compute, row)
        if self._config.rng_every_n_steps and number % self._config.rng_every_n_steps == 0:
            self._boundary.call("rng state", self._archive.save_rng, row)
        waits = self._probe.statistics.deferred and not self._config.stop_on_spike
        if row.loss is not None:
            self._judge.loss(row, row.loss)
        if not waits:
            self._judge_now(row)
        self._store_due()
        return self._judge.news()

    def use(self, optimizers: tuple[torch.optim.Optimizer, ...]) -> None:
        """Go on with `optimizers`: new ones join, and take the place of those whose parameters they have."""
        new = [o for o in optimizers if not any(o is known for known in self._optimizers)]
        if not new:
            return
        theirs = {id(p) for o in new for p in _parameters(o)}
        kept = [o for o in self._optimizers if not any(id(p) in theirs for p in _parameters(o))]
        self._begin_anew((*kept, *new))

    def stop(self) -> None:
        """Note that the optimizer step of the last step will not happen."""
        self._stopped = True

    def close(self) -> None:
        """Take the hooks away, store what is left, close the run; faults stay inside."""
        if os.getpid() != self._process:
            return
        if not self._stopped:
            self._boundary.call("statistics", self._probe.settle)
        self._boundary.call("detach", self._probe.detach)
        self._boundary.call("store", self._drain, keep=0)
        self._archive.close()

    def _begin_anew(self, optimizers: tuple[torch.optim.Optimizer, ...]) -> None:
        """Go on with other optimizers or parameters."""
        self._boundary.call("statistics", self._probe.settle)
        self._boundary.call("store", self._drain, keep=0)
        self._optimizers = optimizers
        self._probe.use(optimizers)

    def _tell_rewind(self, number: int) -> None:
        if not self._told_rewind:
            self._told_rewind = True
            _LOG.warning(
                "step %d comes after step %d: what was recorded from step %d on is replaced "
                "(a step number must go on over the whole training)",
                *(number, self.last_step, number),
            )

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
            self._judge.loss(row, row.loss)
        self._judge.rest(row, peek.grad_norm, peek.shares, self._probe.addressors)
        self._tell(row, peek.grad_norm)

    def _tell(self, row: Row, grad_norm: float | None) -> None:
        if not row.told:
            row.told = True
            values = {"step": row.step, "loss": row.loss, "grad_norm": grad_norm, "noise_growth": row.noise_growth}
            self._outlets.tell(values, None if row.spike is None else news_of(row, row.spike), self.path)

    def _save_spike(self, row: Row) -> None:
        self._boundary.call("rng state", self._archive.save_rng, row)
        if self._config.checkpoint_on_spike:
            save = self._archive.save_checkpoint
            self._boundary.call("checkpoint", save, row, self._model, self._optimizers, now=self.last_step)

    def _store_due(self) -> None:
        """Store what has waited long enough, and everything once a spike is complete."""
        spiked = len(self._rows) > 1 and self._rows[-2].spike is not None
        waited = time.monotonic() - self._stored_at > FLUSH_SECONDS
        if len(self._rows) > DEFERRED_STEPS or waited or spiked:
            self._boundary.call("store", self._drain, keep=1)
        else:
            self._archive.work()

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
        newest = {row.step: row for row in (*rows, *self._rows)}
        for row, found in zip(rows, readings, strict=True):
            self._boundary.call("store", self._store, row, found, replaced=newest[row.step] is not row)
        self._archive.flush()

    def _store(self, row: Row, reading: Reading, *, replaced: bool) -> None:
        scalars = {**reading.scalars, **row.scalars}
        row.loss = loss = row.loss if row.loss is not None else reading.extra.get("loss")
        if loss is not None:
            self._judge.loss(row, loss)
        norm = scalars.get("grad_norm_before_clip")
        shares = {name: max(share.tolist()) for name, share in reading.shares.items()}
        self._judge.rest(row, norm, shares, self._probe.addressors)
        self._tell(row, norm)
        if replaced and row.spike is None:
            return  # its number came again: what is written would have to be taken back
        if "norm_after_clip" in reading.extra:
            scalars["grad_norm_after_clip"] = reading.extra["norm_after_clip"]
        scalars["loss"] = loss
        scalars["batch_index"] = row.batch_index
        scalars["is_spike"] = row.spike is not None
        scalars["spike_score"] = None if row.spike is None else row.spike.score
        scalars["noise_growth"] = row.noise_growth
        self._archive.store(row, scalars, reading)


def whole(value: Tensor) -> Tensor:
    """Return a loss that is a DTensor as a plain tensor."""
    full = getattr(value, "full_tensor", None)
    return value if full is None else full()


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]
