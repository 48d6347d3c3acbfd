"""How far the floating-point buffers (BatchNorm statistics) move from step to step."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ...probe.tensors import dense
from .norms import host, norms, total

MAX_NUMEL = 1_000_000
"""Numbers in all buffers together; above this they are tables (masks, rotary angles) and are not copied."""


class Buffers:
    """Keeps a copy of the buffers."""

    def __init__(self) -> None:
        self._kept: list[Tensor] | None = None

    def update(self, roots: Sequence[nn.Module]) -> float | None:
        """Return the L2 norm of the change since the last call; None at the first, or without buffers."""
        with torch.no_grad():
            now = [dense(b) for root in roots for b in root.buffers() if b.is_floating_point() and b.numel()]
            if not now or sum(b.numel() for b in now) > MAX_NUMEL:
                return None
            kept, self._kept = self._kept, [b.clone() for b in now]
            if kept is None or [b.shape for b in kept] != [b.shape for b in now]:
                return None
            return total(host(norms([a - b for a, b in zip(kept, now, strict=True)])))
