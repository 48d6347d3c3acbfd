"""L2 norm, sum, minimum and maximum of many tensors with as few passes and calls as torch allows.

Measured on a CPU: the infinity norm costs sixteen times as much as ``aminmax``, ``var_mean`` thirty times as
much as the L2 norm, and one ``.item()`` a statistic more than all of it. Everything else (mean, largest
magnitude, standard deviation) follows from these four on short vectors.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .prepared import Prepared, is_for_numpy
from .segments import by_segment, four_by_segment
from .tensors import LOW_PRECISION, dense_all, wide_dtype


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Four numbers a tensor, on the device, in the widest float type."""

    table: Tensor
    """(4, n) sum of squares, sum, highest, negated lowest: the order of the rows of a step's table."""

    @property
    def squares(self) -> Tensor:
        """(n,) sums of squares; a view."""
        return self.table[0]

    @property
    def total(self) -> Tensor:
        """(n,) sums; a view."""
        return self.table[1]

    @property
    def high(self) -> Tensor:
        """(n,) largest numbers."""
        return self.table[2]

    @property
    def low(self) -> Tensor:
        """(n,) smallest numbers."""
        return -self.table[3]


class Reducer:
    """Reduces many tensors; keeps the tables it writes into, for allocating them costs as much as reducing."""

    def __init__(self) -> None:
        self._tables: dict[tuple[int, torch.dtype], tuple[Tensor, list[tuple[Tensor, ...]]]] = {}

    def reduce(self, full: Sequence[Prepared], plain: Sequence[Prepared] = ()) -> tuple[list[Moments], list[Tensor]]:
        """Return the moments of each of `full`, and the sums of squares alone, (n,), of each of `plain`."""
        some = next((p for p in (*full, *plain) if len(p)), None)
        if some is None:
            raise ValueError("nothing to reduce")
        wide = wide_dtype((some.pieces or some.small)[0].device)
        found: list[Moments] = []
        if full:
            pieces = [piece for one in full for piece in one.pieces]
            counts = tuple(count for one in full for count in one.counts)
            joined = _small(full, wide)
            found = _shared_out(full, self._large(pieces, counts, wide), joined)
        return found, sums_of_squares(plain, wide)

    def _large(self, pieces: list[Tensor], counts: tuple[int, ...], wide: torch.dtype) -> Tensor | None:
        """Return (4, n) as `Moments` has them."""
        if not pieces:
            return None
        kind = pieces[0].dtype
        plain = pieces[0].is_cpu and kind not in LOW_PRECISION
        if plain and all(p.dtype == kind and p.numel() for p in pieces):
            table = self._one_by_one(pieces) * _signs(wide, pieces[0].device)
        else:
            table = _kind_by_kind(pieces, wide) * _signs(wide, pieces[0].device)
        table[0].square_()
        if len(pieces) == len(counts):
            return table
        sums = by_segment(table[:2].T.contiguous(), counts, "sum")
        extremes = by_segment(table[2:].T.contiguous(), counts, "max")
        return torch.cat([sums, extremes], 1).T

    def _one_by_one(self, pieces: list[Tensor]) -> Tensor:
        """Return (4, n) norm, total, highest, lowest; a piece is read while the cache still has it."""
        key = (len(pieces), pieces[0].dtype)
        kept = self._tables.get(key)
        if kept is None:
            table = torch.empty(4, len(pieces), dtype=key[1], device=pieces[0].device)
            kept = self._tables[key] = (table, [column.unbind() for column in table.unbind(1)])
        for place, (piece, (norm, total, high, low)) in enumerate(zip(pieces, kept[1], strict=True)):
            if is_for_numpy(piece):
                kept[0].numpy()[:, place] = _by_numpy(piece)
                continue
            torch.linalg.vector_norm(piece, out=norm)
            torch.sum(piece, None, out=total)
            torch.aminmax(piece, out=(low, high))
        return kept[0]


def _by_numpy(piece: Tensor) -> tuple[float, float, float, float]:
    """Return norm, total, highest, lowest; no dot product, which would wake the threads of another library."""
    numpy: Any = sys.modules["numpy"]
    values = piece.detach().numpy().reshape(-1)
    with numpy.errstate(all="ignore"):  # overflow and NaN are news about the training, told elsewhere
        norm = numpy.sqrt(numpy.einsum("i,i->", values, values))
        return norm, numpy.add.reduce(values), numpy.maximum.reduce(values), numpy.minimum.reduce(values)


def reduce(full: Sequence[Prepared], plain: Sequence[Prepared] = ()) -> tuple[list[Moments], list[Tensor]]:
    """Return what `Reducer.reduce` does, for a caller who reduces once."""
    return Reducer().reduce(full, plain)


def moments(tensors: Sequence[Tensor]) -> Moments:
    """Return the moments of a few tensors, in float64 where the device has it."""
    parts = dense_all(tensors)
    wide = wide_dtype(parts[0].device)
    extremes = [torch.aminmax(p) if p.numel() else (p.new_tensor(torch.inf), p.new_tensor(-torch.inf)) for p in parts]
    return Moments(
        torch.stack(
            [
                torch.stack([torch.linalg.vector_norm(p, dtype=wide) for p in parts]).square_(),
                torch.stack([torch.sum(p, dtype=wide) for p in parts]),
                _stack([high for _, high in extremes], wide),
                -_stack([low for low, _ in extremes], wide),
            ]
        )
    )


def _shared_out(full: Sequence[Prepared], cut: Tensor | None, joined: Tensor | None) -> list[Moments]:
    """Give each of `full` its columns: large tensors first, then small."""
    parts = [part for part in (cut, joined) if part is not None]
    table = torch.cat(parts, 1) if len(parts) > 1 else parts[0]
    if len(full) > 1 and len(parts) > 1:
        table = table.index_select(1, _order(tuple([(len(one.counts), len(one.small)) for one in full]), table.device))
    found = []
    for one, columns in zip(full, table.split_with_sizes([len(one) for one in full], 1), strict=True):
        for place in one.sparse:
            columns[2:, place].clamp_(min=0.0)
        found.append(Moments(columns))
    return found


@functools.lru_cache(maxsize=8)
def _signs(wide: torch.dtype, device: torch.device) -> Tensor:
    """Return what turns (4, n) norm, total, highest, lowest into moments, but for the square, in the widest type."""
    return torch.tensor([[1.0], [1.0], [1.0], [-1.0]], dtype=wide, device="cpu").to(device, non_blocking=True)


@functools.lru_cache(maxsize=64)
def _order(counts: tuple[tuple[int, int], ...], device: torch.device) -> Tensor:
    """Return where the columns are that belong together, of those of all large tensors, then all small ones."""
    large, small = range(sum(n for n, _ in counts)), range(sum(n for n, _ in counts), sum(map(sum, counts)))
    order: list[int] = []
    for of_large, of_small in counts:
        order += [*large[:of_large], *small[:of_small]]
        large, small = large[of_large:], small[of_small:]
    return torch.tensor(order, device="cpu").to(device, non_blocking=True)


def _small(full: Sequence[Prepared], wide: torch.dtype) -> Tensor | None:
    """Return (4, n) as `Moments` has them."""
    parts, counts = _joined(full)
    if not parts:
        return None
    return four_by_segment(torch.cat(parts), counts, wide)


def sums_of_squares(plain: Sequence[Prepared], wide: torch.dtype) -> list[Tensor]:
    """Return the sums of squares, (n,), of each of `plain`; there must be something in each."""
    pieces = [piece for one in plain for piece in one.pieces]
    counts = tuple(count for one in plain for count in one.counts)
    small, lengths = _joined(plain)
    parts: list[list[Tensor]] = [[] for _ in plain]
    if pieces:
        large = torch.stack(_norms(pieces)).to(wide).square_()
        large = large if len(counts) == len(pieces) else by_segment(large, counts, "sum")
        for part, values in zip(parts, large.split_with_sizes([len(one.counts) for one in plain]), strict=True):
            part.append(values)
    if small:
        sums = by_segment(torch.cat(small).to(wide).square(), lengths, "sum")
        for part, values in zip(parts, sums.split_with_sizes([len(one.small) for one in plain]), strict=True):
            part.append(values)
    return [part[0] if len(part) == 1 else torch.cat(part) for part in parts]


def _joined(prepared: Sequence[Prepared]) -> tuple[list[Tensor], tuple[int, ...]]:
    """Return all small tensors, and how many numbers are in each."""
    return [part for one in prepared for part in one.small], tuple(itertools.chain(*(one.lengths for one in prepared)))


def _kind_by_kind(pieces: list[Tensor], wide: torch.dtype) -> Tensor:
    """Return (4, n) norm, total, highest, lowest: few kernels for an accelerator, any mix of types."""
    norms = torch.stack(_norms(pieces)).to(wide)
    totals = [torch.sum(p, dtype=torch.float32) if p.dtype in LOW_PRECISION else p.sum() for p in pieces]
    # An empty part (a rank that holds no row of a sharded weight) is neutral.
    empty = pieces[0].new_tensor([torch.inf, -torch.inf]) if any(not p.numel() for p in pieces) else None
    extremes = [torch.aminmax(p) if empty is None or p.numel() else empty.unbind() for p in pieces]
    lows, highs = _stack([low for low, _ in extremes], wide), _stack([high for _, high in extremes], wide)
    return torch.stack([norms, _stack(totals, wide), highs, lows])


def _norms(pieces: list[Tensor]) -> list[Tensor]:
    kinds = {piece.dtype for piece in pieces}
    if len(kinds) > 1:
        single = [p.float() if p.dtype in LOW_PRECISION else p for p in pieces]
        return [torch.linalg.vector_norm(p, dtype=torch.float64 if p.is_cpu else None) for p in single]
    if kinds.pop() in LOW_PRECISION:
        # A float16 norm of its own type overflows at 65,504 and keeps three digits.
        return list(torch._foreach_norm(pieces, 2, dtype=torch.float32))
    return list(torch._foreach_norm(pieces, 2))


def _stack(values: list[Tensor], wide: torch.dtype) -> Tensor:
    if len({value.dtype for value in values}) > 1:
        values = [value.to(wide) for value in values]
    return torch.stack(values).to(wide)
