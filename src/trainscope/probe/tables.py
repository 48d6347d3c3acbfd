"""The two small tables that the per-parameter statistics of a step go into, on the device."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from .measurement import High, Sum
from .shards import Shards


class Tables:
    """Sums and extremes of one step, a row a statistic and a column a parameter.

    Parameters
    ----------
    size : int
        Number of parameters.
    wide : dtype
    device : device
    value : float
        What sums begin with.
    """

    def __init__(self, size: int, wide: torch.dtype, device: torch.device, value: float = 0.0) -> None:
        self._size = size
        self.sums = torch.full((len(Sum), size), value, dtype=wide, device=device)
        self.highs = torch.full((len(High), size), -math.inf, dtype=wide, device=device)

    def put(self, row: Sum | High, places: Sequence[int], values: Tensor) -> None:
        """Write the values of the parameters at `places` (in order, each once)."""
        table = self.highs if isinstance(row, High) else self.sums
        if len(places) == self._size:
            table[row] = values
        else:
            at = torch.tensor(places, dtype=torch.long, device="cpu").to(table.device, non_blocking=True)
            table[row, at] = values.to(device=table.device, dtype=table.dtype, non_blocking=True)

    def unscale(self, places: Sequence[int], scale: Tensor | float) -> None:
        """Divide the gradients at `places` by the loss scale."""
        factor = torch.ones(self._size, dtype=self.sums.dtype, device=self.sums.device)
        value = scale if isinstance(scale, Tensor) else torch.tensor(scale, device="cpu")
        factor[places] = 1 / value.to(device=factor.device, dtype=factor.dtype, non_blocking=True)
        self.sums[Sum.GRAD_SQUARES] *= factor.square()
        self.sums[Sum.CLIPPED_SQUARES] *= factor.square()
        self.sums[Sum.GRAD_TOTAL] *= factor
        self.highs[: High.WEIGHT] *= factor

    def share(self, shards: Shards) -> None:
        """Add what other ranks know about their parts of sharded parameters."""
        if shards:
            shards.add(self.sums)
            shards.widest(self.highs)
