"""The two small tables that the per-parameter statistics of a step go into, on the device."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from .measurement import High, Sum
from .moments import Moments
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
        blank = _blank(size, wide, device, value).clone()
        self.sums, self.highs = blank.split_with_sizes((len(Sum), len(High)))

    def put(self, row: Sum, places: Sequence[int], values: Tensor) -> None:
        """Write the values of the parameters at `places` (in order, each once)."""
        self._write(self.sums[row : row + 1], places, values[None])

    def put_moments(self, sums: Sum, highs: High, places: Sequence[int], found: Moments) -> None:
        """Write moments: squares and total from the row `sums` on, highest and negated lowest from `highs` on."""
        self._write(self.sums[sums : sums + 2], places, found.table[:2])
        self._write(self.highs[highs : highs + 2], places, found.table[2:])

    def _write(self, rows: Tensor, places: Sequence[int], values: Tensor) -> None:
        if len(places) == self._size:
            rows.copy_(values)
        else:
            at = torch.tensor(places, dtype=torch.long, device="cpu").to(rows.device, non_blocking=True)
            rows[:, at] = values.to(device=rows.device, dtype=rows.dtype, non_blocking=True)

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


@functools.lru_cache(maxsize=8)
def _blank(size: int, wide: torch.dtype, device: torch.device, value: float) -> Tensor:
    """Return both tables as they begin; a copy of it costs a third of filling them."""
    blank = torch.full((len(Sum) + len(High), size), -math.inf, dtype=wide, device=device)
    blank[: len(Sum)] = value
    return blank
