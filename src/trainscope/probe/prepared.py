"""Tensors made ready for reducing.

Small tensors (biases, norm scales: half of a transformer's tensors, a hundredth of its numbers) are joined
into one float64 vector and reduced by segments, which is a handful of calls for all of them. Large ones are
cut on a CPU into pieces that torch reduces on one thread, or left to NumPy, which knows no second one: waking
a second thread for a tenth of a millisecond's work costs more than the work.
"""

from __future__ import annotations

import itertools
import sys
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
    """Tensors made ready for reducing: dense, cut; flat, if they must be. Views, where the tensors allow it."""

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


def prepare(tensors: Sequence[Tensor], large: int, *, whole: bool = False) -> Prepared:
    """Make tensors ready; the first `large` of them are cut (with `whole`, but for NumPy's), the others joined.

    They may be sharded (this rank's part counts), sparse, complex or of low precision. Call it, and what
    follows, under ``no_grad``.
    """
    if not tensors:
        return Prepared([], [], [], ())
    parts = dense_all(tensors)
    one_thread = torch.get_num_threads() == 1
    pieces: list[Tensor] = []
    counts = []
    for part in parts[:large]:
        uncut = one_thread or (whole and is_for_numpy(part))
        found = (part,) if uncut and part.is_contiguous() else cut(flatten(part))
        pieces += found
        counts.append(len(found))
    small = [part if part.dim() == 1 else flatten(part) for part in parts[large:]]
    shrunk = [i for i, (t, part) in enumerate(zip(tensors, parts, strict=True)) if part is not t]
    sparse = tuple([i for i in shrunk if tensors[i].layout != torch.strided and parts[i].numel() < tensors[i].numel()])
    return Prepared(pieces, counts, small, tuple([part.numel() for part in small]), sparse)


class Kept:
    """Prepares tensors that stay in memory, anew only when they have moved.

    Parameters
    ----------
    moving : bool
        Whether they may always have moved: this rank's part of a sharded tensor is a new one each time.
    """

    def __init__(self, *, moving: bool) -> None:
        self._moving = moving
        self._found: dict[str, tuple[list[int], Prepared]] = {}

    def prepare(self, name: str, tensors: Sequence[Tensor], large: int, *, whole: bool = False) -> Prepared:
        """Return what :func:`prepare` does of the tensors known by this name."""
        if self._moving:
            return prepare(tensors, large, whole=whole)
        pointers = [t.data_ptr() for t in tensors]
        kept = self._found.get(name)
        if kept is not None and kept[0] == pointers:
            return kept[1]
        prepared = prepare(tensors, large, whole=whole)
        if prepared.begins() == pointers:
            self._found[name] = (pointers, prepared)
        return prepared


def is_for_numpy(part: Tensor) -> bool:
    """Tell whether NumPy takes the moments of a tensor: torch would do it on several threads, and must not."""
    fits = PIECE < part.numel() <= PIECE * PIECES and part.dtype in (torch.float32, torch.float64)
    return fits and part.is_cpu and torch.get_num_threads() > 1 and "numpy" in sys.modules


def cut(flat: Tensor, most: int = PIECES) -> tuple[Tensor, ...]:
    """Cut a flat tensor into at most so many pieces that torch reduces on one thread, else leave it whole."""
    numel = flat.numel()
    if numel <= PIECE or numel > PIECE * most or not flat.is_cpu or torch.get_num_threads() == 1:
        return (flat,)
    whole, rest = divmod(numel, PIECE)
    return tuple(flat.split_with_sizes([PIECE] * whole + ([rest] if rest else [])))
