"""Gradients, weights, updates and optimizer state of measured steps as columns, a row a layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from .layer_rows import LayerRows
from .measurement import Measurement, Stat
from .names import Watched
from .statistics import FLAT

WEIGHTS = ("weight_l2_norm", "weight_mean", "weight_std", "weight_min", "weight_max", "weight_max_abs")

Scalars = dict[str, float | int | bool | None]
Columns = dict[str, Tensor]


class ParameterColumns:
    """Does the arithmetic of many like steps at once."""

    def __init__(self, watched: Watched, rows: LayerRows) -> None:
        self._rows = rows
        self._count = rows.count
        self._numel = torch.tensor(watched.numel, dtype=torch.float64, device="cpu")[rows.order].clamp(min=1)
        self._filled = [place for place, numel in enumerate(watched.numel) if numel]
        self._flat: set[int] = set()

    def take_flat(self) -> list[int]:
        """Return the places of weights whose spread needs more digits, since the last call."""
        flat, self._flat = sorted(self._flat), set()
        return flat

    def of(
        self, found: Sequence[Measurement], vectors: Sequence[Mapping[str, Tensor]]
    ) -> list[tuple[Scalars, Columns, Columns]]:
        """Return scalars, columns and masks of each step; a step without statistics has none."""
        results: list[tuple[Scalars, Columns, Columns]] = [({}, {}, {}) for _ in found]
        groups: dict[object, list[int]] = {}
        for index, (one, moved) in enumerate(zip(found, vectors, strict=True)):
            if "table" in moved:
                present = tuple((name, tuple(places)) for name, places in sorted(one.has.items()))
                late = ("update" in moved, "clipped" in moved)
                groups.setdefault((one.layers, present, one.clipped, one.bad_counted, late), []).append(index)
        for indices in groups.values():
            scalars, columns, valid = self._group(found[indices[0]], [vectors[i] for i in indices])
            wide = {name: self._rows.widened(column, torch.nan) for name, column in columns.items()}
            whole = self._rows.of_parameters(range(self._count))
            masks = valid if whole is None else {**dict.fromkeys(wide, whole), **valid}
            for row, index in enumerate(indices):
                results[index][0].update({name: None if v is None else v[row] for name, v in scalars.items()})
                results[index][1].update({name: column[row] for name, column in wide.items()})
                results[index][2].update(masks)
                if "update_ratio" in wide and 0.0 in (norms := wide["weight_l2_norm"][row]).tolist():
                    results[index][2]["update_ratio"] = norms > 0  # a ratio to nothing is not a number
        return results

    def _group(
        self, like: Measurement, vectors: Sequence[Mapping[str, Tensor]]
    ) -> tuple[dict[str, list[float] | None], Columns, Columns]:
        """Return scalars, columns (steps, n) and masks of steps that measured the same things as `like`."""
        order, numel = self._rows.order, self._numel
        rows = torch.stack([v["table"].view(len(Stat), self._count) for v in vectors], 1)[:, :, order]
        columns: Columns = {}
        valid: Columns = {}
        norm = _norms(rows[Stat.GRAD_SQUARES]) if like.has.get("grad") else None
        scalars = {"grad_norm_before_clip": norm, "grad_norm_after_clip": norm}
        if norm is not None and like.clipped:
            scalars["grad_norm_after_clip"] = _norms(self._after_clipping(like, rows, vectors))
        if not like.layers:
            return scalars, columns, valid
        columns["grad_l2_norm"] = rows[Stat.GRAD_SQUARES].sqrt()
        columns["grad_max_abs"] = torch.maximum(rows[Stat.GRAD_HIGH], rows[Stat.GRAD_NEGATED])
        columns["grad_mean"] = rows[Stat.GRAD_TOTAL] / numel
        if like.bad_counted:
            columns["grad_nan_inf_ratio"] = rows[Stat.BAD] / numel
        self._mask(valid, columns, like.has.get("grad", ()))
        self._weights(rows, columns)
        self._mask(valid, WEIGHTS[1:], self._filled)  # the norm of no numbers is 0, their extremes are not
        scalars["weight_norm"] = _norms(rows[Stat.WEIGHT_SQUARES])
        if "update" in vectors[0]:
            squares = torch.stack([v["update"] for v in vectors])[:, order]
            columns["update_l2_norm"] = squares.sqrt()
            columns["update_ratio"] = columns["update_l2_norm"] / columns["weight_l2_norm"]
            scalars["update_norm"] = _norms(squares)
        for key, row in (("m", Stat.M_SQUARES), ("v", Stat.V_SQUARES)):
            if like.has.get(key):
                columns[f"adam_{key}_norm"] = rows[row].sqrt()
                scalars[f"optimizer_{key}_norm"] = _norms(rows[row])
                self._mask(valid, [f"adam_{key}_norm"], like.has[key])
        if like.has.get("rms"):
            columns["rms_t"] = (rows[Stat.RMS_SUM] / rows[Stat.RMS_COUNT].clamp(min=1)).sqrt()
            self._mask(valid, ["rms_t"], like.has["rms"])
        return scalars, columns, valid

    def _mask(self, valid: Columns, names: Sequence[str] | Columns, places: Sequence[int]) -> None:
        """Note that only the parameters at `places` have these statistics."""
        mask = self._rows.of_parameters(places)
        if mask is not None:
            valid.update(dict.fromkeys(names, mask))

    def _after_clipping(self, like: Measurement, rows: Tensor, vectors: Sequence[Mapping[str, Tensor]]) -> Tensor:
        """Return the squares that the optimizer sees: after clipping, where there was any."""
        if "clipped" in vectors[0]:
            return torch.stack([v["clipped"] for v in vectors])
        clipped = torch.zeros(self._count, dtype=torch.bool, device="cpu")
        clipped[list(like.has["clipped"])] = True
        return torch.where(clipped[self._rows.order], rows[Stat.CLIPPED_SQUARES], rows[Stat.GRAD_SQUARES])

    def _weights(self, rows: Tensor, columns: Columns) -> None:
        numel = self._numel
        squares, mean = rows[Stat.WEIGHT_SQUARES], rows[Stat.WEIGHT_TOTAL] / numel
        variance = (squares - numel * mean**2) / (numel - 1).clamp(min=1)
        low, high = -rows[Stat.WEIGHT_NEGATED], rows[Stat.WEIGHT_HIGH]
        spread = variance.clamp(min=0.0).sqrt()
        values = (squares.sqrt(), mean, spread, low, high, torch.maximum(high, -low))
        columns.update(zip(WEIGHTS, values, strict=True))
        flat = (variance < FLAT * mean**2).any(0).nonzero().flatten()
        self._flat.update(self._rows.order[flat].tolist())


def _norms(squares: Tensor) -> list[float]:
    """Return the global norm of each step from (steps, n) squares."""
    return squares.sum(-1).sqrt().tolist()
