"""L2 norm, sum, minimum and maximum of many tensors with as few passes and calls as torch allows.

Measured on one core (``_foreach_norm`` is a quarter of a millisecond for 10 million floats): the infinity norm
costs sixteen times as much as ``aminmax``, ``var_mean`` thirty times as much as the L2 norm, and one ``.item()`` a
statistic more than all of it. Everything else (mean, largest magnitude, standard deviation) follows from these
four on short vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .tensors import LOW_PRECISION, dense, wide_dtype

SMALL = 65_536
"""Vectors of up to this many numbers (biases, norm scales) are summed in float64: it costs nothing there."""


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Four numbers a tensor, on the device; each (n,)."""

    l2: Tensor
    total: Tensor
    low: Tensor
    high: Tensor


def moments(tensors: Sequence[Tensor], precise: Sequence[bool] | None = None) -> Moments:
    """Measure `tensors`, which may be sharded (this rank's part), sparse, complex or of low precision.

    Parameters
    ----------
    tensors : sequence of n tensors
    precise : sequence of n bool, optional
        Where True, norm and sum are taken in float64, so that a variance may be had from them even where it is
        a millionth of the squared mean.
    """
    parts = [dense(t) for t in tensors]
    device = parts[0].device
    parts = [p if p.device == device else p.to(device, non_blocking=True) for p in parts]
    wide = wide_dtype(device)
    sure = [p.dtype == torch.float64 or bool(precise and precise[i]) for i, p in enumerate(parts)]
    l2 = _norms(parts, sure, wide)
    totals = [torch.sum(p, dtype=wide if s else torch.float32) for p, s in zip(parts, sure, strict=True)]
    low, high = _extremes(parts, wide)
    sparse = [i for i, t in enumerate(tensors) if t.layout != torch.strided and parts[i].numel() < t.numel()]
    if sparse:
        low[sparse], high[sparse] = low[sparse].clamp(max=0.0), high[sparse].clamp(min=0.0)
    return Moments(l2, _stack(totals, wide), low, high)


def norms(tensors: Sequence[Tensor]) -> Tensor:
    """Return the L2 norms alone, (n,), of this rank's part of each tensor."""
    parts = [dense(t) for t in tensors]
    device = parts[0].device
    parts = [p if p.device == device else p.to(device, non_blocking=True) for p in parts]
    return _norms(parts, [p.dtype == torch.float64 for p in parts], wide_dtype(device))


def _norms(parts: list[Tensor], sure: list[bool], wide: torch.dtype) -> Tensor:
    groups: dict[torch.dtype | None, list[int]] = {}
    for place, (part, precise) in enumerate(zip(parts, sure, strict=True)):
        # A float16 norm of its own type overflows at 65,504 and keeps three digits.
        kind = wide if precise else torch.float32 if part.dtype in LOW_PRECISION else None
        groups.setdefault(kind, []).append(place)
    found: list[Tensor] = [parts[0]] * len(parts)
    for kind, places in groups.items():
        chosen = [parts[p] for p in places]
        measured = torch._foreach_norm(chosen, 2) if kind is None else torch._foreach_norm(chosen, 2, dtype=kind)
        for place, value in zip(places, measured, strict=True):
            found[place] = value
    return _stack(found, wide)


def _stack(values: list[Tensor], wide: torch.dtype) -> Tensor:
    if len({value.dtype for value in values}) > 1:
        values = [value.to(wide) for value in values]
    return torch.stack(values).to(wide)


def _extremes(parts: list[Tensor], wide: torch.dtype) -> tuple[Tensor, Tensor]:
    """Lowest and highest value; an empty part (a rank without a row) is neutral."""
    lows, highs = [], []
    for part in parts:
        if part.numel():
            low, high = torch.aminmax(part)
        else:
            low, high = part.new_full((), torch.inf), part.new_full((), -torch.inf)
        lows.append(low)
        highs.append(high)
    return _stack(lows, wide), _stack(highs, wide)
