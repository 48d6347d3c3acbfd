"""The probe: everything that watches one model and its optimizers, behind a few calls.

    probe.attach()
    found = probe.measure(scaler)   # once a step, between backward and optimizer.step
    readings = probe.read([found])  # when its numbers are wanted: one device-to-host copy
    probe.settle()                  # after the last step: what did its optimizer step change?
    probe.detach()

It reads and never writes: it draws no random number, leaves gradients and weights alone, and on an
accelerator does not wait for the device before `read`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from . import clipping
from .boundary import Boundary
from .forwards import Forwards
from .histograms import Histograms
from .measurement import Measurement, Peek, Stat
from .names import has_changed, watch
from .options import Options
from .reading import Reader, Reading
from .statistics import Statistics
from .transfer import to_host


class Probe:
    """Watches one model and its optimizers.

    Parameters
    ----------
    model : Module
        As the training calls it: wrapped in DDP, sharded, compiled or plain.
    optimizers : sequence of Optimizer
    options : Options
    boundary : Boundary
        Gets the faults of hooks and measuring.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizers: Sequence[torch.optim.Optimizer],
        options: Options,
        boundary: Boundary,
    ) -> None:
        self._model, self._optimizers, self._options = model, tuple(optimizers), options
        self._boundary = boundary
        self.forwards = Forwards(model, options.activation_filter, boundary)
        self._histograms = Histograms(options.histogram_bins)
        self._statistics: Statistics | None = None
        self._reader: Reader | None = None
        self._calls = 0
        self._since_sample = options.activation_every
        self._since_histogram = options.histogram_every
        self._since_ratio = options.moments_every
        self._since_second = options.second_every
        self._last: Measurement | None = None
        self._clips_last = False
        self._ended = time.perf_counter()

    def attach(self) -> None:
        """Put the hooks in place."""
        self.forwards.attach()
        clipping.listen(self)
        self._boundary.call("activations", self._arm)
        self._ended = time.perf_counter()

    def detach(self) -> None:
        """Take every hook away; may be called at any time, and twice."""
        clipping.leave(self)
        self.forwards.detach()
        self._last = None

    @property
    def statistics(self) -> Statistics:
        """Per-parameter statistics; parameters are listed at the first use, when lazy modules have theirs."""
        if self._statistics is None:
            watched = watch(self._model, self._optimizers)
            self._statistics = Statistics(watched, self._optimizers, self._boundary, self._options.device)
            self._reader = Reader(watched, self._model)
        return self._statistics

    def has_changed(self) -> bool:
        """Tell whether parameters have joined, gone or been replaced; the model is looked at with its histograms."""
        if self._statistics is None:
            return False
        thorough = self._since_histogram >= self._options.histogram_every
        return has_changed(self._statistics.watched, self._model, self._optimizers, thorough=thorough)

    def use(self, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        """Go on with other optimizers or parameters; what was measured must have been settled and read."""
        if self._statistics is not None:
            self._histograms.forget_order(self._statistics.watched.names)
        self._optimizers = tuple(optimizers)
        self._statistics = self._reader = self._last = None
        self._boundary.call("forward", self.forwards.look_again)
        self._since_second = self._options.second_every

    def keep_edges(self, edges: Mapping[str, Sequence[float]]) -> None:
        """Use the histogram edges that these parameters had in an earlier session."""
        self._histograms.known.update(edges)

    def before_clip(self, parameters: list[Tensor]) -> None:
        """Measure gradients before they are clipped, unless their step has been measured already."""
        self._boundary.call("clipping", self._before_clip, parameters)

    def after_clip(self, parameters: list[Tensor]) -> None:
        """Note what clipping left."""
        self._boundary.call("clipping", self._after_clip, parameters)

    @torch.no_grad()
    def _before_clip(self, parameters: list[Tensor]) -> None:
        self._clips_last = self.statistics.gradients.clips_measured(parameters)
        if not self._clips_last:
            self.statistics.gradients.keep_raw(parameters)

    @torch.no_grad()
    def _after_clip(self, parameters: list[Tensor]) -> None:
        del parameters
        if not self._clips_last:
            self.statistics.gradients.mark_clipped()
        elif self._last is not None:
            self.statistics.clip(self._last)

    @torch.no_grad()
    def measure(self, scaler: Any = None) -> Measurement:
        """Measure the step whose backward is done; its optimizer step comes next.

        What the optimizer did after the step before is added to that step's `Measurement`.
        """
        found = Measurement(layers=self._calls % self._options.trace_every == 0)
        found.seconds = time.perf_counter() - self._ended
        sampled = self.forwards.activations.armed
        self._boundary.call("learning rate", self._note_rates, found)
        ratio = sampled and self._since_ratio >= self._options.moments_every
        self._since_ratio = 1 if ratio else self._since_ratio + 1
        second = ratio or self._since_second >= self._options.second_every
        self.statistics.measure(found, scaler, self._last, ratio=ratio, second=second)
        self._since_second = 1 if found.has.get("v") else self._since_second + 1
        if self._last is not None and "scale" in found.vectors:
            self._last.vectors["next_scale"] = found.vectors["scale"]
        self._boundary.call("batch", self._note_batches, found)
        self._boundary.call("routing", self._note_shares, found)
        if sampled:
            self._boundary.call("activations", self._note_activations, found)
        if found.layers and self.statistics.watched.tensors and self._since_histogram >= self._options.histogram_every:
            self._boundary.call("histograms", self._note_histograms, found)
        self._last = found
        self._begin(found, sampled)
        return found

    @torch.no_grad()
    def settle(self) -> None:
        """Add to the last `Measurement` what its optimizer step has changed by now."""
        if self._last is not None and "update" not in self._last.vectors:
            self._boundary.call("statistics", self.statistics.settle, self._last)

    def read(self, found: Sequence[Measurement]) -> list[Reading]:
        """Return the numbers of measured steps: one device-to-host copy for all of them."""
        statistics = self.statistics
        if self._reader is None:
            return []
        self._boundary.call("statistics", statistics.finish)
        readings, flat, bad = self._reader.read(found, to_host([one.vectors for one in found]))
        if statistics.deferred:
            statistics.learn(flat=flat, bad=bad)
        return readings

    def peek(self, found: Measurement, names: Sequence[str] = ()) -> Peek:
        """Return what live detectors need of one step now, before it is read; one device-to-host copy."""
        wanted = {name: found.vectors[name] for name in names if name in found.vectors}
        wanted.update({f"shares {name}": found.vectors[f"shares {name}"] for name in found.shares})
        if "table" in found.vectors and found.has.get("grad") and found.squares is None:
            wanted["squares"] = found.vectors["table"].view(len(Stat), -1)[Stat.GRAD_SQUARES]
        vectors = to_host([wanted])[0]
        squares = math.fsum(vectors["squares"].tolist()) if "squares" in vectors else found.squares
        norm = None if squares is None else squares**0.5
        shares = {name: max(vectors[f"shares {name}"].tolist()) for name in found.shares}
        totals = {name: sum(vectors[f"shares {name}"].tolist()) or 1.0 for name in found.shares}
        return Peek(vectors, norm, {name: share / totals[name] for name, share in shares.items()})

    @property
    def addressors(self) -> frozenset[str]:
        """Names of the blocks that are addressors and not routers."""
        return self.forwards.routing.addressors

    def _begin(self, found: Measurement, sampled: bool) -> None:
        """Begin the next step."""
        found.micro_batches = self.forwards.next()
        self._calls += 1
        self._since_sample = 1 if sampled else self._since_sample + 1
        self._since_histogram = 1 if found.histogram_edges is not None else self._since_histogram + 1
        self._boundary.call("activations", self._arm)
        self._ended = time.perf_counter()

    def _arm(self) -> None:
        activations = self.forwards.activations
        traced = self._calls % self._options.trace_every == 0
        due = traced and self._since_sample >= self._options.activation_every
        if due and not activations.armed:
            activations.arm()
        elif not due and activations.armed:
            activations.disarm()

    def _note_rates(self, found: Measurement) -> None:
        for group in (g for o in self._optimizers for g in o.param_groups):
            rate = group.get("lr")
            if isinstance(rate, Tensor):
                found.vectors[f"lr{len(found.learning_rates)}"] = rate.detach().clone()
                rate = None
            found.learning_rates.append(None if rate is None else float(rate))

    def _note_batches(self, found: Measurement) -> None:
        found.batches, seen = self.forwards.batches.collect()
        found.vectors.update(seen)

    def _note_shares(self, found: Measurement) -> None:
        for name, counts in self.forwards.routing.collect().items():
            found.shares[name] = counts.numel()
            found.vectors[f"shares {name}"] = counts

    def _note_activations(self, found: Measurement) -> None:
        seen = self.forwards.activations.collect()
        if seen is not None:
            found.activations = seen
            found.vectors.update(activations=seen.rows.view(-1), dead=seen.dead)
        attended = self.forwards.attention.collect() if self.forwards.attention is not None else None
        if attended is not None:
            names, calls, rows = attended
            found.attention = (names, calls)
            found.vectors["attention"] = rows.view(-1)

    def _note_histograms(self, found: Measurement) -> None:
        watched, shards = self.statistics.watched, self.statistics.shards
        if self._histograms.edges is None:
            self._histograms.choose(watched.names, watched.tensors, watched.numel, shards)
        found.vectors["histograms"] = self._histograms.count(watched.tensors, shards)
        found.histogram_edges = self._histograms.edges
