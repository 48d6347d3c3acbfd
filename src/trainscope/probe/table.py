"""The small table that the per-parameter statistics of a step go into, on the device."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from .measurement import EXTREMES, Stat
from .moments import Moments
from .shards import Shards


class Table:
    """Sums and extremes of one step, a row a :class:`Stat` and a column a parameter.

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
        self.values = _blank(size, wide, device, value).clone()

    def put(self, row: Stat, places: Sequence[int], values: Tensor) -> None:
        """Write the values of the parameters at `places` (in order, each once)."""
        self._write(self.values[row : row + 1], places, values[None])

    def put_moments(self, first: Stat, places: Sequence[int], found: Moments) -> None:
        """Write moments into four rows from `first` on."""
        self._write(self.values[first : first + 4], places, found.table)

    def _write(self, rows: Tensor, places: Sequence[int], values: Tensor) -> None:
        if len(places) == self._size:
            rows.copy_(values)
        else:
            at = torch.tensor(places, dtype=torch.long, device="cpu").to(rows.device, non_blocking=True)
            rows[:, at] = values.to(device=rows.device, dtype=rows.dtype, non_blocking=True)

    def unscale(self, places: Sequence[int], scale: Tensor | float) -> None:
        """Divide the gradients at `places` by the loss scale."""
        factor = torch.ones(self._size, dtype=self.values.dtype, device=self.values.device)
        value = scale if isinstance(scale, Tensor) else torch.tensor(scale, device="cpu")
        factor[places] = 1 / value.to(device=factor.device, dtype=factor.dtype, non_blocking=True)
        for row in (Stat.GRAD_TOTAL, Stat.GRAD_HIGH, Stat.GRAD_NEGATED):
            self.values[row] *= factor
        for row in (Stat.GRAD_SQUARES, Stat.CLIPPED_SQUARES):
            self.values[row] *= factor.square()

    def share(self, shards: Shards) -> None:
        """Add what other ranks know about their parts of sharded parameters."""
        if shards:
            sums = [row for row in Stat if row not in EXTREMES]
            for rows, over_ranks in ((sums, shards.add), (list(EXTREMES), shards.widest)):
                part = self.values[rows]
                over_ranks(part)
                self.values[rows] = part


@functools.lru_cache(maxsize=8)
def _blank(size: int, wide: torch.dtype, device: torch.device, value: float) -> Tensor:
    """Return a table as it begins; a copy of it costs a third of filling it."""
    blank = torch.full((len(Stat), size), value, dtype=wide, device=device)
    blank[list(EXTREMES)] = -math.inf
    return blank
