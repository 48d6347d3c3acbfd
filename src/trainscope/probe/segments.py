"""Reduces runs of a joined tensor, each by itself."""

from __future__ import annotations

import functools
import itertools
import sys
from typing import Any

import torch
from torch import Tensor


def by_segment(values: Tensor, counts: tuple[int, ...], kind: str) -> Tensor:
    """Reduce the first dimension by segments of so many entries; an empty one gives what is neutral.

    Parameters
    ----------
    kind : str
        ``sum``, ``min`` or ``max``.
    """
    numpy = sys.modules.get("numpy")  # where somebody else has it: this room must do without
    if numpy is not None and values.is_cpu and 0 not in counts:
        reduction = {"sum": numpy.add, "min": numpy.minimum, "max": numpy.maximum}[kind]
        # A fourth of the time that torch's own takes.
        with numpy.errstate(all="ignore"):  # overflow and NaN are news about the training, told elsewhere
            return torch.from_numpy(reduction.reduceat(values.numpy(), _begins(counts, numpy)))
    return torch.segment_reduce(values, kind, lengths=_lengths(counts, values.device), axis=0, unsafe=True)


def four_by_segment(values: Tensor, counts: tuple[int, ...], wide: torch.dtype) -> Tensor:
    """Return the (4, n) sums of squares, sums, maxima and negated minima of the segments of a flat tensor."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not values.is_cpu or 0 in counts:
        full = values.to(wide)
        kinds = ((full * full, "sum"), (full, "sum"), (full, "max"), (-full, "max"))
        return torch.stack([by_segment(numbers, counts, kind) for numbers, kind in kinds])
    begins = _begins(counts, numpy)
    data: Any = values.to(wide).numpy()
    table = numpy.empty((4, len(counts)), data.dtype)
    with numpy.errstate(all="ignore"):
        numpy.add.reduceat(data, begins, out=table[1])
        numpy.maximum.reduceat(data, begins, out=table[2])
        numpy.negative(numpy.minimum.reduceat(data, begins, out=table[3]), out=table[3])
        numpy.add.reduceat(numpy.multiply(data, data), begins, out=table[0])
    return torch.from_numpy(table)


def squared_changes(new: Tensor, old: Tensor, counts: tuple[int, ...], room: Tensor, wide: torch.dtype) -> Tensor:
    """Return the sums of squares of `new` - `old` by segments; `room` is as large, and of the same type.

    In that type if they fit into it: a pairwise sum of thousands of numbers keeps six digits in single precision, at
    half the cost.
    """
    numpy = sys.modules.get("numpy")
    if numpy is None or not room.is_cpu or 0 in counts:
        return by_segment(torch.sub(new, old, out=room).to(wide).square_(), counts, "sum")
    # torch would wake a second thread for it, which costs more than the work.
    changes: Any = room.numpy()
    begins = _begins(counts, numpy)
    with numpy.errstate(all="ignore"):
        numpy.subtract(new.numpy(), old.numpy(), out=changes)
        sums = numpy.add.reduceat(numpy.multiply(changes, changes, out=changes), begins)
        if not numpy.isfinite(sums).all():
            apart = numpy.subtract(new.to(wide).numpy(), old.to(wide).numpy())
            sums = numpy.add.reduceat(numpy.multiply(apart, apart), begins)
    return torch.from_numpy(sums).to(wide)


@functools.lru_cache(maxsize=64)
def _begins(counts: tuple[int, ...], numpy: Any) -> Any:
    return numpy.array(list(itertools.accumulate(counts[:-1], initial=0)))


@functools.lru_cache(maxsize=64)
def _lengths(counts: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.tensor(counts, device="cpu").to(device, non_blocking=True)
