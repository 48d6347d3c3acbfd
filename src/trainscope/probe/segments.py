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


def squared_changes(new: Tensor, old: Tensor, counts: tuple[int, ...], room: Tensor) -> Tensor:
    """Return the sums of squares of `new` - `old` by segments; `room` has their size and the widest type."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not room.is_cpu:
        return by_segment(torch.sub(new, old, out=room).square_(), counts, "sum")
    # torch would wake a second thread for it, which costs more than the work.
    changes = room.numpy()
    with numpy.errstate(all="ignore"):
        numpy.subtract(new.numpy(), old.numpy(), out=changes)
        numpy.square(changes, out=changes)
    return by_segment(room, counts, "sum")


@functools.lru_cache(maxsize=64)
def _begins(counts: tuple[int, ...], numpy: Any) -> Any:
    return numpy.array(list(itertools.accumulate(counts[:-1], initial=0)))


@functools.lru_cache(maxsize=64)
def _lengths(counts: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.tensor(counts, device="cpu").to(device, non_blocking=True)
