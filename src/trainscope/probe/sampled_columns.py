"""Activations and attention of sampled steps as columns, a row a layer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from .activations import Layout
from .forward_moments import FIELDS, combine
from .layer_rows import LayerRows
from .measurement import Measurement

ACTIVATIONS = (
    *("act_mean", "act_std", "act_min", "act_max", "act_median", "act_max_abs", "act_kurtosis"),
    "act_dead_fraction",
)
ATTENTION = ("attn_logit_max", "attn_entropy")

Columns = dict[str, Tensor]


def sampled_columns(
    found: Sequence[Measurement], vectors: Sequence[Mapping[str, Tensor]], rows: LayerRows
) -> list[tuple[Columns, Columns]]:
    """Return columns and masks of each step; steps that sampled the same things are worked out together."""
    results: list[tuple[Columns, Columns]] = [({}, {}) for _ in found]
    layouts: dict[Layout, list[int]] = {}
    heads: dict[tuple[tuple[str, ...], tuple[int, ...]], list[int]] = {}
    for index, one in enumerate(found):
        if one.activations is not None:
            layouts.setdefault(one.activations.layout, []).append(index)
        if one.attention is not None:
            heads.setdefault(one.attention, []).append(index)
    for names in (*(layout.names for layout in layouts), *(names for names, _ in heads)):
        rows.of_modules(names)  # every layer is known before the first column is made
    for layout, indices in layouts.items():
        values = _activations(layout, [vectors[i] for i in indices])
        _fill(results, indices, ACTIVATIONS, values, rows.of_modules(layout.names), len(rows.names))
    for (names, calls), indices in heads.items():
        values = _attention(calls, [vectors[i] for i in indices])
        _fill(results, indices, ATTENTION, values, rows.of_modules(names), len(rows.names))
    return results


def _fill(
    results: list[tuple[Columns, Columns]],
    indices: Sequence[int],
    kinds: Sequence[str],
    values: Tensor,
    rows: Sequence[int],
    size: int,
) -> None:
    """Write (kinds, modules, steps) values into the rows of their layers."""
    table = torch.full((len(kinds), len(indices), size), math.nan, dtype=torch.float64, device="cpu")
    table[:, :, list(rows)] = values.transpose(1, 2)
    mask = torch.zeros(size, dtype=torch.bool, device="cpu")
    mask[list(rows)] = True
    for number, index in enumerate(indices):
        columns, valid = results[index]
        for kind, column in zip(kinds, table, strict=True):
            columns[kind] = column[number]
            # Only an activation function has a share of dead units.
            valid[kind] = mask if kind != "act_dead_fraction" else ~column[number].isnan()


def _activations(layout: Layout, vectors: Sequence[Mapping[str, Tensor]]) -> Tensor:
    """Return (8, modules, steps) values in the order of `ACTIVATIONS`."""
    rows = torch.stack([v["activations"].view(-1, FIELDS) for v in vectors], 2).double()
    count, mean, second, _, fourth, low, high, medians = combine(rows, layout.counts, thirds=layout.thirds).unbind()
    kurtosis = count * fourth / second**2 - 3  # of a constant: 0/0, NaN, as it should
    deviation = (second / (count - 1).clamp(min=1)).sqrt()
    magnitude = torch.maximum(high, -low)
    dead = torch.full_like(mean, math.nan)
    if layout.functions:
        dead[list(layout.functions)] = torch.stack([v["dead"] for v in vectors], 1).double()
    return torch.stack([mean, deviation, low, high, medians, magnitude, kurtosis, dead])


def _attention(calls: Sequence[int], vectors: Sequence[Mapping[str, Tensor]]) -> Tensor:
    """Return (2, modules, steps): the largest logit and the mean entropy over the calls of a module."""
    rows = torch.stack([v["attention"].view(-1, 2) for v in vectors], 1).double()
    lengths = torch.tensor(calls, device="cpu")
    top = torch.segment_reduce(rows[..., 0].contiguous(), "max", lengths=lengths, axis=0)
    entropy = torch.segment_reduce(rows[..., 1].contiguous(), "mean", lengths=lengths, axis=0)
    return torch.stack([top, entropy])
