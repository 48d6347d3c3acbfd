"""A measured step as plain numbers: what a sink stores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .batches import BatchColumns
from .layer_rows import LayerRows
from .measurement import Measurement
from .names import Watched
from .parameter_columns import ParameterColumns, Scalars
from .sampled_columns import sampled_columns


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """The numbers of one step.

    Attributes
    ----------
    scalars : dict of str to float, int, bool or None
        Global numbers; None is "not measured", NaN and infinity are data.
    names : tuple of str
        Layers: parameters, then modules without parameters of their own. The same object while nothing new
        is seen.
    columns : dict of str to (n,) float64 tensor
        Statistic to one number a layer; empty where the step has no layer statistics.
    valid : dict of str to (n,) bool tensor
        False where a layer does not have the statistic (a frozen weight's gradient).
    histograms : (counts, edges), optional
        (n, bins) and (n, bins + 1) float64.
    shares : dict of str to (experts,) tensor
    extra : dict of str to float
        Numbers that the caller put among the measurement's vectors: ``loss``, ``norm_after_clip``.
    """

    scalars: Scalars
    names: tuple[str, ...]
    columns: dict[str, Tensor]
    valid: dict[str, Tensor]
    histograms: tuple[Tensor, Tensor] | None
    shares: dict[str, Tensor]
    extra: dict[str, float]


EXTRA = ("loss", "norm_after_clip")


class Reader:
    """Turns host vectors into a `Reading`; remembers which layer has which row."""

    def __init__(self, watched: Watched, model: nn.Module) -> None:
        self._rows = LayerRows(watched, model)
        self._parameters = ParameterColumns(watched, self._rows)
        self._batches = BatchColumns()

    def read(
        self, found: Sequence[Measurement], vectors: Sequence[Mapping[str, Tensor]]
    ) -> tuple[list[Reading], list[int], bool]:
        """Return readings, weights whose spread needs more digits, whether the last gradient is bad."""
        sampled = sampled_columns(found, vectors, self._rows)  # first: it may find new layers
        parameters = self._parameters.of(found, vectors)
        batches = self._batches.of([one.batches for one in found], vectors)
        readings = []
        bad = False
        for one, moved, mine, theirs, batch in zip(found, vectors, parameters, sampled, batches, strict=True):
            scalars, columns, valid = mine
            columns.update(theirs[0])
            valid.update(theirs[1])
            scalars.update(_scalars(one, moved) | batch)
            if "table" in moved:
                norm = scalars["grad_norm_before_clip"]
                bad = norm is not None and not math.isfinite(norm)
            histograms = self._histograms(one, moved)
            shares = {name: _share(moved[f"shares {name}"]) for name in one.shares}
            extra = {name: moved[name].tolist()[0] for name in EXTRA if name in moved}
            readings.append(Reading(scalars, self._rows.names, columns, valid, histograms, shares, extra))
        return readings, self._parameters.take_flat(), bad

    def _histograms(self, found: Measurement, vectors: Mapping[str, Tensor]) -> tuple[Tensor, Tensor] | None:
        edges = found.histogram_edges
        if edges is None:
            return None
        order = self._rows.order
        counts = self._rows.widened(vectors["histograms"].view(len(order), -1)[order].T, 0.0).T
        return counts.contiguous(), self._rows.widened(edges[order].T, torch.nan).T.contiguous()


def _share(counts: Tensor) -> Tensor:
    return counts / counts.sum().clamp(min=1e-30)


def _scalars(found: Measurement, vectors: Mapping[str, Tensor]) -> Scalars:
    rates = [
        rate if rate is not None else vectors[f"lr{number}"].tolist()[0] if f"lr{number}" in vectors else None
        for number, rate in enumerate(found.learning_rates)
    ]
    scale = vectors["scale"].tolist()[0] if "scale" in vectors else found.scale
    scalars: Scalars = {
        "lr": rates[0] if rates else None,
        "step_time_ms": 1e3 * found.seconds,
        "micro_batches": found.micro_batches,
        "grad_scale": scale,
    }
    scalars.update({f"lr_{number}": rate for number, rate in enumerate(rates) if number})
    if scale is not None and "next_scale" in vectors:
        scalars["step_skipped"] = vectors["next_scale"].tolist()[0] < scale
    return scalars
