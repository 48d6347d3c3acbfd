"""A measured step as plain numbers: what a sink stores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .activations import Sampled, combine
from .batches import Farthest
from .measurement import High, Measurement, Sum
from .names import Watched, modules
from .statistics import FLAT

Scalars = dict[str, float | int | bool | None]

WEIGHTS = ("weight_l2_norm", "weight_mean", "weight_std", "weight_min", "weight_max", "weight_max_abs")
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
        self._order = torch.tensor(watched.order, dtype=torch.long)
        self._names = tuple(watched.names[i] for i in watched.order)
        self._row_of = {key: watched.order.index(place) for key, place in watched.index.items()}
        self._count = len(watched.names)
        self._numel = torch.tensor(watched.numel, dtype=torch.float64)[self._order].clamp(min=1)
        self._modules = dict(modules(model))
        self._rows: dict[str, int] = {}
        self._flat: list[int] = []
        self._batches = Farthest()

    def read(
        self, found: Sequence[Measurement], vectors: Sequence[Mapping[str, Tensor]]
    ) -> tuple[list[Reading], list[int], bool]:
        """Return readings, weights whose spread needs more digits, whether the last gradient is bad."""
        parameters = self._all_parameters(found, vectors)
        readings = []
        bad = False
        for one, moved, (scalars, columns, valid) in zip(found, vectors, parameters, strict=True):
            scalars.update(_scalars(one, moved) | self._batches.scalars(moved))
            if "sums" in moved:
                norm = scalars["grad_norm_before_clip"]
                bad = norm is not None and not math.isfinite(norm)
            self._sampled(one, moved, columns, valid)
            histograms = self._histograms(one, moved)
            if len(self._names) > self._count and columns:
                self._widen(columns, valid)
            shares = {name: _share(moved[f"shares {name}"]) for name in one.shares}
            extra = {name: moved[name].tolist()[0] for name in EXTRA if name in moved}
            readings.append(Reading(scalars, self._names, columns, valid, histograms, shares, extra))
        flat, self._flat = self._flat, []
        return readings, flat, bad

    def _all_parameters(
        self, found: Sequence[Measurement], vectors: Sequence[Mapping[str, Tensor]]
    ) -> list[tuple[Scalars, dict[str, Tensor], dict[str, Tensor]]]:
        """Work out the parameter statistics of like steps together: the arithmetic is done once for many."""
        results: list[tuple[Scalars, dict[str, Tensor], dict[str, Tensor]]] = [({}, {}, {}) for _ in found]
        groups: dict[object, list[int]] = {}
        for index, (one, moved) in enumerate(zip(found, vectors, strict=True)):
            if "sums" in moved:
                present = tuple((name, tuple(places)) for name, places in sorted(one.has.items()))
                kind = (
                    one.layers,
                    present,
                    one.clipped,
                    one.bad_counted,
                    "update" in moved,
                    "clipped" in moved,
                )
                groups.setdefault(kind, []).append(index)
        for indices in groups.values():
            chosen = [vectors[i] for i in indices]
            scalars, columns, valid = self._parameters(found[indices[0]], chosen)
            for row, index in enumerate(indices):
                results[index][0].update({name: None if v is None else v[row] for name, v in scalars.items()})
                results[index][1].update({name: column[row] for name, column in columns.items()})
                results[index][2].update(valid)
                if "update_ratio" in columns and 0.0 in (norms := columns["weight_l2_norm"][row]).tolist():
                    results[index][2]["update_ratio"] = norms > 0  # a ratio to nothing is not a number
        return results

    def _mask(self, places: Sequence[int]) -> Tensor | None:
        """Return which parameters have a statistic, None if all have."""
        if len(places) == self._count:
            return None
        mask = torch.zeros(self._count, dtype=torch.bool)
        mask[list(places)] = True
        return mask[self._order]

    def _parameters(
        self, like: Measurement, vectors: Sequence[Mapping[str, Tensor]]
    ) -> tuple[dict[str, list[float] | None], dict[str, Tensor], dict[str, Tensor]]:
        """Return scalars, columns (steps, n) and masks of steps that measured the same things as `like`."""
        sums = torch.stack([v["sums"].view(len(Sum), self._count) for v in vectors], 1)[:, :, self._order]
        highs = torch.stack([v["highs"].view(len(High), self._count) for v in vectors], 1)[:, :, self._order]
        numel = self._numel
        columns: dict[str, Tensor] = {}
        valid: dict[str, Tensor] = {}
        grads = bool(like.has.get("grad"))
        norm = _norms(sums[Sum.GRAD_SQUARES]) if grads else None
        scalars = {"grad_norm_before_clip": norm, "grad_norm_after_clip": norm}
        if grads and like.clipped:
            late = "clipped" in vectors[0]
            clipped = torch.stack([v["clipped"] for v in vectors]) if late else sums[Sum.CLIPPED_SQUARES]
            scalars["grad_norm_after_clip"] = _norms(clipped if late else self._with_unclipped(like, sums))
        if not like.layers:
            return scalars, columns, valid
        columns["grad_l2_norm"] = sums[Sum.GRAD_SQUARES].sqrt()
        columns["grad_max_abs"] = torch.maximum(highs[High.GRAD], highs[High.GRAD_NEGATED])
        columns["grad_mean"] = sums[Sum.GRAD_TOTAL] / numel
        if like.bad_counted:
            columns["grad_nan_inf_ratio"] = sums[Sum.BAD] / numel
        mask = self._mask(like.has.get("grad", ()))
        if mask is not None:
            valid.update(dict.fromkeys(columns, mask))
        self._weights(sums, highs, columns)
        scalars["weight_norm"] = _norms(sums[Sum.WEIGHT_SQUARES])
        if "update" in vectors[0]:
            squares = torch.stack([v["update"] for v in vectors])[:, self._order]
            columns["update_l2_norm"] = squares.sqrt()
            columns["update_ratio"] = columns["update_l2_norm"] / columns["weight_l2_norm"]
            scalars["update_norm"] = _norms(squares)
        for key, row in (("m", Sum.M_SQUARES), ("v", Sum.V_SQUARES)):
            places = like.has.get(key, ())
            if places:
                columns[f"adam_{key}_norm"] = sums[row].sqrt()
                scalars[f"optimizer_{key}_norm"] = _norms(sums[row])
                if (mask := self._mask(places)) is not None:
                    valid[f"adam_{key}_norm"] = mask
        if like.has.get("rms"):
            columns["rms_t"] = (sums[Sum.RMS_SUM] / sums[Sum.RMS_COUNT].clamp(min=1)).sqrt()
            if (mask := self._mask(like.has["rms"])) is not None:
                valid["rms_t"] = mask
        return scalars, columns, valid

    def _with_unclipped(self, like: Measurement, sums: Tensor) -> Tensor:
        """Return the squares that the optimizer sees: after clipping, where there was any."""
        clipped = torch.zeros(self._count, dtype=torch.bool)
        clipped[list(like.has["clipped"])] = True
        return torch.where(clipped[self._order], sums[Sum.CLIPPED_SQUARES], sums[Sum.GRAD_SQUARES])

    def _weights(self, sums: Tensor, highs: Tensor, columns: dict[str, Tensor]) -> None:
        numel = self._numel
        squares, mean = sums[Sum.WEIGHT_SQUARES], sums[Sum.WEIGHT_TOTAL] / numel
        variance = (squares - numel * mean**2) / (numel - 1).clamp(min=1)
        low, high = -highs[High.WEIGHT_NEGATED], highs[High.WEIGHT]
        spread = variance.clamp(min=0.0).sqrt()
        values = (squares.sqrt(), mean, spread, low, high, torch.maximum(high, -low))
        columns.update(zip(WEIGHTS, values, strict=True))
        flat = (variance < FLAT * mean**2).any(0).nonzero().flatten()
        self._flat = self._order[flat].tolist()

    def _sampled(
        self,
        found: Measurement,
        vectors: Mapping[str, Tensor],
        columns: dict[str, Tensor],
        valid: dict[str, Tensor],
    ) -> None:
        """Fill the columns of sampled modules."""
        parts: list[tuple[tuple[str, ...], tuple[str, ...], Tensor]] = []
        if found.activations is not None:
            parts.append((ACTIVATIONS, found.activations.names, _activations(vectors, found.activations)))
        if found.attention is not None:
            names, calls = found.attention
            rows, lengths = vectors["attention"].view(-1, 2), torch.tensor(calls)
            top = torch.segment_reduce(rows[:, 0].contiguous(), "max", lengths=lengths)
            entropy = torch.segment_reduce(rows[:, 1].contiguous(), "mean", lengths=lengths)
            parts.append((ATTENTION, names, torch.stack([top, entropy])))
        for kinds, names, values in parts:
            rows = torch.tensor([self._row(name) for name in names])
            size = len(self._names)
            for kind, vector in zip(kinds, values, strict=True):
                column = torch.full((size,), math.nan, dtype=torch.float64)
                mask = torch.zeros(size, dtype=torch.bool)
                column[rows] = vector
                mask[rows] = True if kind != "act_dead_fraction" else ~vector.isnan()
                columns[kind], valid[kind] = column, mask

    def _row(self, name: str) -> int:
        """Return the row of a module: that of its own weight, or one of its own."""
        known = self._rows.get(name)
        if known is not None:
            return known
        own = self._modules[name]._parameters if name in self._modules else {}
        place = next(
            (
                self._row_of[id(p)]
                for p in (own.get("weight"), *own.values())
                if p is not None and id(p) in self._row_of
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
        counts, edges = vectors["histograms"].view(self._count, -1)[self._order], edges[self._order]
        missing = len(self._names) - self._count
        if missing:
            counts = torch.cat([counts, counts.new_zeros(missing, counts.shape[1])])
            edges = torch.cat([edges, edges.new_full((missing, edges.shape[1]), math.nan)])
        return counts, edges


def _activations(vectors: Mapping[str, Tensor], seen: Sampled) -> Tensor:
    """Return (8, n) rows in the order of `ACTIVATIONS`."""
    merged = combine(vectors["activations"], seen.counts, seen.pieces, thirds=seen.thirds)
    count, mean, second, _, fourth, low, high = merged.unbind(1)
    kurtosis = count * fourth / second**2 - 3  # of a constant: 0/0, NaN, as it should
    deviation = (second / (count - 1).clamp(min=1)).sqrt()
    magnitude = torch.maximum(high, -low)
    return torch.stack([mean, deviation, low, high, vectors["medians"], magnitude, kurtosis, vectors["dead"]])


def _norms(squares: Tensor) -> list[float]:
    """Return the global norm of each step from (steps, n) squares."""
    return squares.sum(-1).sqrt().tolist()


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
