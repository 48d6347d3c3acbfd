"""What one forward of one module shows: moments, extremes and a median.

On small models a call into torch costs more than its numbers. So a hook makes only two: extremes, which are
of all numbers, and a copy of whole examples (entries of the first dimension, spread evenly over the batch)
that have up to `SAMPLE` numbers together. The copies of many modules are reduced side by side. Where one
example alone has more, it is reduced at once and in place. Whole examples, because outliers sit in a few
channels and a few positions: a strided sample meets those always or never.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .prepared import PIECES, cut
from .tensors import spread

SAMPLE = 32_768
"""Numbers of a forward that mean, spread, kurtosis and median are taken of. The standard error of the
kurtosis of so many independent normal numbers is 0.03. A power of two, as the sizes of examples are: one that is
too large to be copied costs three times as much."""
MEDIAN_SAMPLE = 1_024
"""Numbers per forward that the median is taken of: its standard error is 0.04 standard deviations."""
ROWS = 32
"""Forwards that are reduced together: 4 MB of copies at most, for each number of numbers."""
FIELDS = 7
"""Mean, sum of 2nd powers around it, root of that of 4th, sum of 3rd, lowest, highest, median."""

_Key = tuple[int, torch.dtype, torch.device]


@dataclass(frozen=True, slots=True, eq=False)
class Forward:
    """One measured forward."""

    count: int
    """Numbers that moments are of."""
    number: int
    """Which row of `Meter.take` it is."""
    peak: Tensor | None
    """Largest magnitude of every unit, where units were asked for."""


class _Batch:
    """Room for some forwards of equal size, kept from step to step: allocating costs as much as measuring."""

    def __init__(self, size: int, kind: torch.dtype, device: torch.device) -> None:
        self.copies = torch.empty(ROWS, size, dtype=kind, device=device)
        self.rows = self.copies.unbind()
        # Lowest and highest of every piece of every forward; of pieces that a forward does not have, what is neutral.
        pieces = PIECES if device.type == "cpu" and torch.get_num_threads() > 1 else 1
        self.lows = torch.full((ROWS, pieces), torch.inf, dtype=kind, device=device)
        self.highs = torch.full((ROWS, pieces), -torch.inf, dtype=kind, device=device)
        places = ((row.unbind() for row in part.unbind()) for part in (self.lows, self.highs))
        self.slots = [list(zip(low, high, strict=True)) for low, high in zip(*places, strict=True)]
        self.numbers: list[int] = []

    def reduce(self, *, thirds: bool) -> Tensor:
        """Return (forwards, FIELDS), and forget them."""
        used = len(self.numbers)
        self.numbers = []
        values = self.copies[:used]
        size = values.shape[1]
        median = values[:, :: _stride(size)].contiguous().median(dim=1).values
        mean = values.mean(dim=1, keepdim=True)
        centred = values.sub_(mean)
        # In place, except where third powers need the centred numbers again.
        squares = centred * centred if thirds else centred.mul_(centred)
        second, fourth = squares.sum(dim=1), torch.linalg.vector_norm(squares, dim=1)
        third = centred.mul_(squares).sum(dim=1) if thirds else second
        table = torch.stack([mean.squeeze(1), second, fourth, third, *self._extremes(used), median], 1)
        if self.lows.shape[1] > 1:
            self.lows.fill_(torch.inf)
            self.highs.fill_(-torch.inf)
        return table

    def _extremes(self, used: int) -> tuple[Tensor, Tensor]:
        low, high = self.lows[:used], self.highs[:used]
        return (low.amin(1), high.amax(1)) if low.shape[1] > 1 else (low.squeeze(1), high.squeeze(1))


class Meter:
    """Measures the forwards of one step after another."""

    def __init__(self) -> None:
        self.thirds = True
        """Whether third powers are summed: merging several forwards needs them, and one forward does not."""
        self._batches: dict[_Key, _Batch] = {}
        self._tables: list[Tensor] = []
        self._order: list[int] = []
        self._count = 0

    def measure(self, values: Tensor, units: tuple[int, ...]) -> Forward:
        """Measure a dense tensor that is not empty; call it under ``no_grad``.

        Parameters
        ----------
        units : tuple of int
            Dimensions over which to take the largest magnitude of every unit; empty if there are no units.
        """
        kind = torch.float64 if values.dtype == torch.float64 else torch.float32
        chosen = examples(values)
        size = chosen.numel()
        number, self._count = self._count, self._count + 1
        peak = None
        if units:
            lows, highs = torch.amin(values, units), torch.amax(values, units)
            peak = torch.maximum(highs, -lows)
        if size > SAMPLE:
            low, high = (lows.amin(), highs.amax()) if units else torch.aminmax(values)
            self._tables.append(_one(chosen, low, high, kind, thirds=self.thirds))
            self._order.append(number)
            return Forward(size, number, peak)
        key = (size, kind, values.device)
        batch = self._batches.get(key)
        if batch is None:
            batch = self._batches[key] = _Batch(*key)
        row = len(batch.numbers)
        batch.numbers.append(number)
        batch.rows[row].view(chosen.shape).copy_(chosen)
        if not units and values.dtype == kind:
            pieces = cut(values.view(-1)) if len(batch.slots[row]) > 1 and values.is_contiguous() else (values,)
            for piece, slot in zip(pieces, batch.slots[row], strict=False):
                torch.aminmax(piece, out=slot)
        else:
            low, high = (lows.amin(), highs.amax()) if units else torch.aminmax(values)
            batch.slots[row][0][0].copy_(low)
            batch.slots[row][0][1].copy_(high)
        if row == ROWS - 1:
            self._reduce(batch)
        return Forward(size, number, peak)

    def take(self) -> Tensor:
        """Return (forwards, FIELDS) of everything measured since the last call, on the device of the first."""
        for batch in self._batches.values():
            if batch.numbers:
                self._reduce(batch)
        tables, order = self._tables, self._order
        self._tables, self._order, self._count = [], [], 0
        device, kind = tables[0].device, tables[0].dtype
        if any(table.device != device or table.dtype != kind for table in tables):
            tables = [table.to(device, torch.float32, non_blocking=True) for table in tables]
        table = tables[0] if len(tables) == 1 else torch.cat(tables)
        if order == sorted(order):
            return table
        places = torch.tensor(sorted(range(len(order)), key=order.__getitem__), device="cpu")
        return table[places.to(device, non_blocking=True)]

    def _reduce(self, batch: _Batch) -> None:
        self._order += batch.numbers
        self._tables.append(batch.reduce(thirds=self.thirds))


@functools.cache
def _stride(size: int) -> int:
    """Return how far apart the numbers of a median's sample are: coprime with `size`, so that it visits all columns."""
    stride = max(1, size // MEDIAN_SAMPLE)
    while math.gcd(stride, size) > 1:
        stride += 1
    return stride


def _one(chosen: Tensor, low: Tensor, high: Tensor, kind: torch.dtype, *, thirds: bool) -> Tensor:
    """Return (1, FIELDS) of one example that is too large to copy, piece by piece."""
    flat = chosen.reshape(-1)
    pieces = cut(flat)
    mean = torch.stack([torch.sum(piece, dtype=kind) for piece in pieces]).sum() / flat.numel()
    parts = []
    for piece in pieces:
        centred = piece.to(kind) - mean
        squares = centred * centred
        fourth = torch.linalg.vector_norm(squares)
        second = squares.sum()
        # No dot products: they wake the threads of another library.
        parts.append(torch.stack([second, centred.mul_(squares).sum() if thirds else second, fourth * fourth]))
    second, third, fourth = torch.stack(parts).sum(dim=0)
    median = spread(chosen, MEDIAN_SAMPLE)[:MEDIAN_SAMPLE].median()
    row = [mean, second, fourth.sqrt(), third, low, high, median]
    return torch.stack([value.to(kind) for value in row]).unsqueeze(0)


def examples(values: Tensor) -> Tensor:
    """Return a view of whole examples, evenly spread, that have up to `SAMPLE` numbers together, or one."""
    total = values.numel()
    if total <= SAMPLE or values.dim() < 2:
        return values
    rows = values.shape[0]
    chosen = max(1, SAMPLE * rows // total)
    return values if chosen >= rows else values[:: -(-rows // chosen)]


def combine(rows: Tensor, counts: Sequence[Sequence[int]], *, thirds: bool) -> Tensor:
    """Merge the forwards of each module, on the host, in float64, for several steps at once.

    Moments are merged with the pairwise update of central moments (Pébay, "Formulas for robust, one-pass
    parallel computation of covariances and arbitrary-order statistical moments", 2008); the median is the
    mean of the forwards' medians, weighted.

    Parameters
    ----------
    rows : (forwards, FIELDS, steps) Tensor
    counts : sequence of sequence of int
        Numbers in each forward of each module.

    Returns
    -------
    (8, modules, steps) Tensor
        Count, mean, sums of the 2nd, 3rd and 4th power around the mean, lowest, highest, median.
    """
    mean, second, fourth, third, low, high, median = rows.unbind(1)
    if not thirds:
        third = torch.full_like(third, torch.nan)
    # A NaN outside the examples that were measured is one in the mean all the same.
    mean = torch.where(low.isnan(), low, mean)
    numbers = torch.tensor([float(n) for module in counts for n in module], dtype=torch.float64, device="cpu")
    count = numbers.unsqueeze(1).expand_as(mean)
    forwards = torch.stack([count, mean, second, third, fourth.square(), low, high, median])
    if forwards.shape[1] == len(counts):
        return forwards
    each = forwards.split_with_sizes([len(c) for c in counts], 1)
    return torch.stack([functools.reduce(_merge, one.unbind(1)) for one in each], 1)


def _merge(a: Tensor, b: Tensor) -> Tensor:
    (na, ma, a2, a3, a4, la, ha, pa), (nb, mb, b2, b3, b4, lb, hb, pb) = a.unbind(), b.unbind()
    n, d = na + nb, mb - ma
    s2 = a2 + b2 + d**2 * na * nb / n
    s3 = a3 + b3 + d**3 * na * nb * (na - nb) / n**2 + 3 * d * (na * b2 - nb * a2) / n
    s4 = (
        a4
        + b4
        + d**4 * na * nb * (na**2 - na * nb + nb**2) / n**3
        + 6 * d**2 * (na**2 * b2 + nb**2 * a2) / n**2
        + 4 * d * (na * b3 - nb * a3) / n
    )
    ends = (torch.minimum(la, lb), torch.maximum(ha, hb), (na * pa + nb * pb) / n)
    return torch.stack([n, ma + d * nb / n, s2, s3, s4, *ends])
