"""A measured step as plain numbers: what a sink stores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .activations import combine
from .measurement import High, Measurement, Sum
from .names import Watched, modules
from .statistics import FLAT

ALWAYS = ("grad_l2_norm", "grad_max_abs", "grad_mean", "grad_nan_inf_ratio")
WEIGHTS = ("weight_l2_norm", "weight_mean", "weight_std", "weight_min", "weight_max", "weight_max_abs")
CHANGES = ("update_l2_norm", "update_ratio")
STATES = ("adam_m_norm", "adam_v_norm")
ACTIVATIONS = (
    *("act_mean", "act_std", "act_min", "act_max", "act_median", "act_max_abs", "act_kurtosis"),
    "act_dead_fraction",
)
ATTENTION = ("attn_logit_max", "attn_entropy")


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """The numbers of one step.

    Attributes
    ----------
    scalars : dict of str to float, int, bool or None
        Global numbers; None is "not measured", NaN and infinity are data.
    names : tuple of str
        Layers: parameters, then modules without parameters of their own. The same object while nothing new is seen.
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

    scalars: dict[str, float | int | bool | None]
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
        self._watched = watched
        self._names = watched.names
        self._count = len(watched.names)
        self._numel = torch.tensor(watched.numel, dtype=torch.float64)
        self._modules = dict(modules(model))
        self._rows: dict[str, int] = {}
        self._all = torch.ones(self._count, dtype=torch.bool)

    def read(self, found: Measurement, vectors: Mapping[str, Tensor]) -> tuple[Reading, list[int], bool]:
        """Return the reading, the weights whose spread needs more digits, and whether a gradient is not finite."""
        scalars = _scalars(found, vectors)
        columns: dict[str, Tensor] = {}
        valid: dict[str, Tensor] = {}
        flat: list[int] = []
        bad = False
        if "sums" in vectors:
            sums = vectors["sums"].view(len(Sum), self._count)
            highs = vectors["highs"].view(len(High), self._count)
            bad = not math.isfinite(_norm(scalars, "grad_norm_before_clip", sums[Sum.GRAD_SQUARES], found.has["grad"]))
            clipped = sums[Sum.CLIPPED_SQUARES] if "clipped" not in vectors else vectors["clipped"]
            if found.clipped:
                _norm(scalars, "grad_norm_after_clip", clipped, found.has["grad"])
            else:
                scalars["grad_norm_after_clip"] = scalars["grad_norm_before_clip"]
            if found.layers:
                flat = self._parameters(found, vectors, sums, highs, scalars, columns, valid)
        table = self._sampled(found, vectors, columns, valid)
        histograms = self._histograms(found, vectors)
        if table or len(self._names) > self._count:
            self._widen(columns, valid)
        shares = {name: _share(vectors[f"shares {name}"]) for name in found.shares}
        extra = {name: vectors[name].tolist()[0] for name in EXTRA if name in vectors}
        return Reading(scalars, self._names, columns, valid, histograms, shares, extra), flat, bad

    def _mask(self, places: Sequence[int]) -> Tensor | None:
        """Return which parameters have a statistic, None if all have."""
        if len(places) == self._count:
            return None
        mask = torch.zeros(self._count, dtype=torch.bool)
        mask[list(places)] = True
        return mask

    def _parameters(
        self,
        found: Measurement,
        vectors: Mapping[str, Tensor],
        sums: Tensor,
        highs: Tensor,
        scalars: dict[str, float | int | bool | None],
        columns: dict[str, Tensor],
        valid: dict[str, Tensor],
    ) -> list[int]:
        numel = self._numel.clamp(min=1)
        columns["grad_l2_norm"] = sums[Sum.GRAD_SQUARES].sqrt()
        columns["grad_max_abs"] = torch.maximum(highs[High.GRAD], highs[High.GRAD_NEGATED])
        columns["grad_mean"] = sums[Sum.GRAD_TOTAL] / numel
        grads = self._mask(found.has["grad"])
        if found.bad_counted or bool_finite(sums[Sum.GRAD_SQUARES]):
            columns["grad_nan_inf_ratio"] = sums[Sum.BAD] / numel
        for name in ALWAYS if grads is not None else ():
            if name in columns and grads is not None:
                valid[name] = grads
        squares, mean = sums[Sum.WEIGHT_SQUARES], sums[Sum.WEIGHT_TOTAL] / numel
        variance = (squares - numel * mean**2) / (numel - 1).clamp(min=1)
        norm = squares.sqrt()
        low, high = -highs[High.WEIGHT_NEGATED], highs[High.WEIGHT]
        spread = variance.clamp(min=0.0).sqrt()
        magnitude = torch.maximum(high, -low)
        columns.update(zip(WEIGHTS, (norm, mean, spread, low, high, magnitude), strict=True))
        _norm(scalars, "weight_norm", squares, range(self._count))
        if "update" in vectors:
            change = vectors["update"].sqrt()
            columns["update_l2_norm"], columns["update_ratio"] = change, change / norm.clamp(min=1e-30)
            _norm(scalars, "update_norm", vectors["update"], range(self._count))
        for name, key, row in (("adam_m_norm", "m", Sum.M_SQUARES), ("adam_v_norm", "v", Sum.V_SQUARES)):
            places = found.has.get(key, ())
            if places:
                columns[name] = sums[row].sqrt()
                _norm(scalars, f"optimizer_{key}_norm", sums[row], places)
                mask = self._mask(places)
                if mask is not None:
                    valid[name] = mask
        if found.has.get("rms"):
            columns["rms_t"] = (sums[Sum.RMS_SUM] / sums[Sum.RMS_COUNT].clamp(min=1)).sqrt()
            mask = self._mask(found.has["rms"])
            if mask is not None:
                valid["rms_t"] = mask
        return (variance < FLAT * mean**2).nonzero().flatten().tolist()

    def _sampled(
        self, found: Measurement, vectors: Mapping[str, Tensor], columns: dict[str, Tensor], valid: dict[str, Tensor]
    ) -> bool:
        """Fill the columns of sampled modules; return whether there were any."""
        parts: list[tuple[tuple[str, ...], tuple[str, ...], Tensor]] = []
        if found.activations is not None:
            names, calls = found.activations
            parts.append((ACTIVATIONS, names, _activations(vectors, calls)))
        if found.attention is not None:
            names, calls = found.attention
            groups = vectors["attention"].view(-1, 2).split(list(calls))
            parts.append(
                (ATTENTION, names, torch.stack([torch.stack([g[:, 0].amax(), g[:, 1].mean()]) for g in groups], 1))
            )
        for kinds, names, values in parts:
            rows = torch.tensor([self._row(name) for name in names])
            size = len(self._names)
            for kind, vector in zip(kinds, values, strict=True):
                column = torch.full((size,), math.nan, dtype=torch.float64)
                mask = torch.zeros(size, dtype=torch.bool)
                column[rows] = vector
                mask[rows] = True if kind != "act_dead_fraction" else ~vector.isnan()
                columns[kind], valid[kind] = column, mask
        return bool(parts)

    def _row(self, name: str) -> int:
        """Return the row of a module: that of its own weight, or one of its own."""
        known = self._rows.get(name)
        if known is not None:
            return known
        own = self._modules[name]._parameters if name in self._modules else {}
        place = next(
            (
                self._watched.index[id(p)]
                for p in (own.get("weight"), *own.values())
                if p is not None and id(p) in self._watched.index
            ),
            None,
        )
        if place is None or place in self._rows.values():  # a tied weight has its row already
            place = len(self._names)
            self._names = (*self._names, name)
        self._rows[name] = place
        return place

    def _widen(self, columns: dict[str, Tensor], valid: dict[str, Tensor]) -> None:
        """Give every column the rows of modules without parameters."""
        size = len(self._names)
        default = torch.arange(size) < self._count
        for name, column in columns.items():
            mask = valid.get(name)
            missing = size - column.numel()
            if missing:
                columns[name] = torch.cat([column, column.new_full((missing,), math.nan)])
            if mask is None:
                valid[name] = default
            elif mask.numel() < size:
                valid[name] = torch.cat([mask, mask.new_zeros(size - mask.numel())])

    def _histograms(self, found: Measurement, vectors: Mapping[str, Tensor]) -> tuple[Tensor, Tensor] | None:
        edges = found.histogram_edges
        if edges is None:
            return None
        counts = vectors["histograms"].view(self._count, -1)
        missing = len(self._names) - self._count
        if missing:
            counts = torch.cat([counts, counts.new_zeros(missing, counts.shape[1])])
            edges = torch.cat([edges, edges.new_full((missing, edges.shape[1]), math.nan)])
        return counts, edges


def _activations(vectors: Mapping[str, Tensor], calls: Sequence[int]) -> Tensor:
    """Return (8, n) rows in the order of `ACTIVATIONS`."""
    merged = combine(vectors["activations"].view(-1, 7), calls)
    count, mean, second, _, fourth, low, high = merged.unbind(1)
    kurtosis = count * fourth / second**2 - 3  # of a constant: 0/0, NaN, as it should
    deviation = (second / (count - 1).clamp(min=1)).sqrt()
    magnitude = torch.maximum(high, -low)
    return torch.stack([mean, deviation, low, high, vectors["medians"], magnitude, kurtosis, vectors["dead"]])


def bool_finite(values: Tensor) -> bool:
    """Tell whether all of a host vector is finite."""
    return math.isfinite(math.fsum(abs(v) for v in values.tolist() if v == v)) and not values.isnan().any()


def _norm(
    scalars: dict[str, float | int | bool | None], name: str, squares: Tensor, places: Sequence[int]
) -> float:
    if not len(places):
        scalars[name] = None
        return 0.0
    norm = _root(squares.sum(0, keepdim=True).tolist()[0])
    scalars[name] = norm
    return norm


def _root(total: float) -> float:
    return math.sqrt(total) if total >= 0 else math.nan


def _share(counts: Tensor) -> Tensor:
    return counts / counts.sum().clamp(min=1e-30)


def _scalars(found: Measurement, vectors: Mapping[str, Tensor]) -> dict[str, float | int | bool | None]:
    rates = [
        rate if rate is not None else vectors[f"lr{number}"].tolist()[0] if f"lr{number}" in vectors else None
        for number, rate in enumerate(found.learning_rates)
    ]
    scale = vectors["scale"].tolist()[0] if "scale" in vectors else found.scale
    scalars: dict[str, float | int | bool | None] = {
        "lr": rates[0] if rates else None,
        "step_time_ms": 1e3 * found.seconds,
        "micro_batches": found.micro_batches,
        "grad_scale": scale,
    }
    scalars.update({f"lr_{number}": rate for number, rate in enumerate(rates) if number})
    if scale is not None and "next_scale" in vectors:
        scalars["step_skipped"] = vectors["next_scale"].tolist()[0] < scale
    return scalars
