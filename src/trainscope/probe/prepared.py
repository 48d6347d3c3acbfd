"""Tensors made ready for reducing.

Small tensors (biases, norm scales: half of a transformer's tensors, a hundredth of its numbers) are joined
into one float64 vector and reduced by segments, which is a handful of calls for all of them. Large ones are
cut on a CPU into pieces that torch reduces on one thread: waking a second thread for a tenth of a
millisecond's work costs more than the work.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .tensors import dense_all, flatten

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
    lengths: tuple[int, ...]
    """Numbers in each small tensor."""
    sparse: tuple[int, ...] = ()
    """Places of tensors that are 0 beyond what they store."""

    def __len__(self) -> int:
        return len(self.counts) + len(self.small)

    def begins(self) -> list[int]:
        """Return where each tensor begins in memory: not where the tensor itself does, if it was copied."""
        places = itertools.accumulate(self.counts[:-1], initial=0) if self.counts else ()
        return [*(self.pieces[at].data_ptr() for at in places), *(part.data_ptr() for part in self.small)]


def prepare(tensors: Sequence[Tensor], large: int) -> Prepared:
    """Make tensors ready; the first `large` of them are cut, the others joined.

    They may be sharded (this rank's part counts), sparse, complex or of low precision. Call it, and what
    follows, under ``no_grad``.
    """
    if not tensors:
        return Prepared([], [], [], ())
    parts = [flatten(part) for part in dense_all(tensors)]
    pieces: list[Tensor] = []
    counts = []
    for part in parts[:large]:
        found = cut(part)
        pieces += found
        counts.append(len(found))
    sparse = tuple(i for i, t in enumerate(tensors) if t.layout != torch.strided and parts[i].numel() < t.numel())
    small = parts[large:]
    return Prepared(pieces, counts, small, tuple([part.numel() for part in small]), sparse)


def cut(flat: Tensor, most: int = PIECES) -> tuple[Tensor, ...]:
    """Cut a flat tensor into at most so many pieces that torch reduces on one thread, else leave it whole."""
    numel = flat.numel()
    if numel <= PIECE or numel > PIECE * most or not flat.is_cpu or torch.get_num_threads() == 1:
        return (flat,)
    whole, rest = divmod(numel, PIECE)
    return tuple(flat.split_with_sizes([PIECE] * whole + ([rest] if rest else [])))
