"""Exact norms of gradients, weights and updates of one optimizer's parameters, in a few passes over them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ...probe.tensors import LOW_PRECISION, dense


def norms(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the L2 norm of each tensor, on its device, at least in single precision."""
    if not tensors:
        return []
    parts = [dense(t) for t in tensors]
    parts = [p.float() if p.dtype in LOW_PRECISION else p for p in parts]
    return list(torch._foreach_norm(parts, 2))


def host(values: Sequence[Tensor]) -> list[float]:
    """Return 0-dim tensors as numbers; one copy a device."""
    if not values:
        return []
    device = values[0].device
    found: list[float] = torch.stack([v.double().to(device) for v in values]).tolist()
    return found


def gradient_norms(parameters: Sequence[Tensor], scale: float = 1.0) -> list[float]:
    """Return the norm of each gradient, -1 where there is none."""
    present = [p.grad for p in parameters if p.grad is not None]
    values = iter(host(norms(present)))
    return [-1.0 if p.grad is None else next(values) / scale for p in parameters]


class Updates:
    """Keeps a copy of the weights over a step, to say exactly what it changed."""

    def __init__(self) -> None:
        self._kept: list[Tensor] = []
        self.weights: list[float] = []
        """L2 norm of each weight before the step."""

    def before(self, parameters: Sequence[Tensor]) -> None:
        """Copy the weights, just before the step."""
        now = [dense(p) for p in parameters]
        same = len(now) == len(self._kept) and all(
            a.shape == b.shape and a.dtype == b.dtype and a.device == b.device
            for a, b in zip(now, self._kept, strict=True)
        )
        if same:
            torch._foreach_copy_(self._kept, now)
        else:
            self._kept = [t.clone() for t in now]
        self.weights = host(norms(now))

    def after(self, parameters: Sequence[Tensor]) -> list[float]:
        """Return the norm of each change; 0 only where not one bit of a finite weight changed."""
        if not self._kept:
            return []
        torch._foreach_sub_(self._kept, [dense(p) for p in parameters])
        found = host(norms(self._kept))
        for place, norm in enumerate(found):
            if norm == 0.0:
                # The squares of a tiny change vanish; the change does not.
                found[place] = float(self._kept[place].abs().max()) if self._kept[place].numel() else 0.0
        return found


def total(values: Sequence[float]) -> float:
    """Return the norm of all from the norm of each; entries below 0 (no gradient) do not count."""
    return math.sqrt(sum(v * v for v in values if not v < 0))
