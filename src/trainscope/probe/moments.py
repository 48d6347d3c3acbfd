"""L2 norm, sum, minimum and maximum of many tensors with as few passes and calls as torch allows.

Measured on a CPU: the infinity norm costs sixteen times as much as ``aminmax``, ``var_mean`` thirty times as
much as the L2 norm, and one ``.item()`` a statistic more than all of it. Everything else (mean, largest
magnitude, standard deviation) follows from these four on short vectors.

Small tensors (biases, norm scales: half of a transformer's tensors, a hundredth of its numbers) are joined
into one float64 vector and reduced by segments, which is a handful of calls for all of them. Large ones are
cut on a CPU into pieces that torch reduces on one thread: waking a second thread for a tenth of a
millisecond's work costs more than the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .tensors import LOW_PRECISION, dense_all, wide_dtype

SMALL = 4_096
"""Tensors of up to this many numbers are joined."""
PIECE = 32_704
"""Numbers in a piece: torch goes to several threads at 32,768."""
PIECES = 8
"""A tensor of more pieces than this is worth several threads."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Tensors made ready for reducing: dense, cut, flat. Views, where the tensors allow it."""

    pieces: list[Tensor]
    counts: list[int]
    """Pieces of each large tensor."""
    small: list[Tensor]
    sparse: tuple[int, ...] = ()
    """Places of tensors that are 0 beyond what they store."""

    def __len__(self) -> int:
        return len(self.counts) + len(self.small)


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Four numbers a tensor, on the device, in the widest float type; each (n,)."""

    squares: Tensor
    """Sum of squares."""
    total: Tensor
    low: Tensor
    high: Tensor


def prepare(tensors: Sequence[Tensor], large: int) -> Prepared:
    """Make tensors ready; the first `large` of them are cut, the others joined.

    They may be sharded (this rank's part counts), sparse, complex or of low precision. Call it, and what
    follows, under ``no_grad``.
    """
    if not tensors:
        return Prepared([], [], [])
    parts = dense_all(tensors)
    pieces: list[Tensor] = []
    counts = []
    for part in parts[:large]:
        if part.is_cpu and PIECE < part.numel() <= PIECE * PIECES:
            cut = part.reshape(-1).split_with_sizes(piece_sizes(part.numel()))
            pieces += cut
            counts.append(len(cut))
        else:
            pieces.append(part)
            counts.append(1)
    sparse = tuple(i for i, t in enumerate(tensors) if t.layout != torch.strided and parts[i].numel() < t.numel())
    small = [part if part.dim() == 1 else part.reshape(-1) for part in parts[large:]]
    return Prepared(pieces, counts, small, sparse)


def piece_sizes(numel: int) -> list[int]:
    """Cut `numel` numbers into pieces that torch works on with one thread."""
    whole, rest = divmod(numel, PIECE)
    return [PIECE] * whole + ([rest] if rest else [])


def reduce(full: Sequence[Prepared], plain: Sequence[Prepared] = ()) -> tuple[list[Moments], list[Tensor]]:
    """Return the moments of each of `full`, and the sums of squares alone, (n,), of each of `plain`."""
    some = next((p for p in (*full, *plain) if len(p)), None)
    if some is None:
        raise ValueError("nothing to reduce")
    device = (some.pieces or some.small)[0].device
    wide = wide_dtype(device)
    pieces = [piece for one in full for piece in one.pieces]
    counts = [count for one in full for count in one.counts]
    others = [piece for one in plain for piece in (*one.pieces, *one.small)]
    norms = torch.stack(_norms([*pieces, *others])).to(wide).square_() if pieces or others else None
    found: list[Moments] = []
    if full:
        cut = None if norms is None else _large(pieces, counts, norms[: len(pieces)], wide)
        joined = _small([part for one in full for part in one.small], wide)
        found = _shared_out(full, cut, joined)
    squares: list[Tensor] = []
    if plain and norms is not None:
        rest = norms[len(pieces) :]
        lengths = [count for one in plain for count in (*one.counts, *([1] * len(one.small)))]
        if len(lengths) < len(others):
            rest = _by_segment(rest, lengths, "sum")
        squares = list(rest.split_with_sizes([len(one) for one in plain]))
    return found, squares


def moments(tensors: Sequence[Tensor]) -> Moments:
    """Return the moments of a few tensors, in float64 where the device has it."""
    parts = dense_all(tensors)
    wide = wide_dtype(parts[0].device)
    extremes = [torch.aminmax(p) if p.numel() else (p.new_tensor(torch.inf), p.new_tensor(-torch.inf)) for p in parts]
    return Moments(
        torch.stack([torch.linalg.vector_norm(p, dtype=wide) for p in parts]).square_(),
        torch.stack([torch.sum(p, dtype=wide) for p in parts]),
        _stack([low for low, _ in extremes], wide),
        _stack([high for _, high in extremes], wide),
    )


def _shared_out(full: Sequence[Prepared], cut: Tensor | None, joined: Tensor | None) -> list[Moments]:
    """Give each of `full` its columns: large tensors first, then small."""
    found = []
    at = small_at = 0
    for one in full:
        columns = []
        if cut is not None and one.counts:
            columns.append(cut[:, at : at + len(one.counts)])
        if joined is not None and one.small:
            columns.append(joined[:, small_at : small_at + len(one.small)])
        at, small_at = at + len(one.counts), small_at + len(one.small)
        table = torch.cat(columns, 1) if len(columns) != 1 else columns[0]
        for place in one.sparse:
            table[2, place].clamp_(max=0.0)
            table[3, place].clamp_(min=0.0)
        found.append(Moments(*table.unbind()))
    return found


def _small(parts: list[Tensor], wide: torch.dtype) -> Tensor | None:
    if not parts:
        return None
    data = torch.cat(parts).to(wide)
    lengths = torch.tensor([part.numel() for part in parts]).to(data.device, non_blocking=True)
    return torch.stack(
        [
            torch.segment_reduce(values, kind, lengths=lengths, unsafe=True)
            for values, kind in ((data * data, "sum"), (data, "sum"), (data, "min"), (data, "max"))
        ]
    )


def _large(pieces: list[Tensor], counts: list[int], squares: Tensor, wide: torch.dtype) -> Tensor | None:
    if not pieces:
        return None
    totals = [torch.sum(p, dtype=torch.float32) if p.dtype in LOW_PRECISION else p.sum() for p in pieces]
    # An empty part (a rank that holds no row of a sharded weight) is neutral.
    empty = pieces[0].new_tensor([torch.inf, -torch.inf]) if any(not p.numel() for p in pieces) else None
    extremes = [torch.aminmax(p) if empty is None or p.numel() else empty.unbind() for p in pieces]
    rows = [
        squares,
        _stack(totals, wide),
        _stack([low for low, _ in extremes], wide),
        _stack([high for _, high in extremes], wide),
    ]
    if len(pieces) > len(counts):
        kinds = ("sum", "sum", "min", "max")
        rows = [_by_segment(row, counts, kind) for row, kind in zip(rows, kinds, strict=True)]
    return torch.stack(rows)


def _by_segment(values: Tensor, counts: list[int], kind: str) -> Tensor:
    lengths = torch.tensor(counts).to(values.device, non_blocking=True)
    return torch.segment_reduce(values, kind, lengths=lengths, unsafe=True)


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
