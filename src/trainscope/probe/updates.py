"""How much the optimizer changed each weight, on a sample of its numbers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .moments import sums_of_squares
from .prepared import Prepared
from .segments import squared_changes
from .tensors import dense, is_sharded, runs

SAMPLE = 4_096
"""Numbers of a weight whose change is followed; a smaller weight is followed whole."""


class _Buffer:
    """Room for all samples side by side."""

    def __init__(self, samples: Sequence[Tensor]) -> None:
        self.sizes = tuple(part.numel() for part in samples)
        kinds = {part.dtype for part in samples}
        self.flat = torch.empty(
            sum(self.sizes), dtype=torch.float64 if torch.float64 in kinds else torch.float32, device="cpu"
        )
        split = self.flat.split_with_sizes(self.sizes)
        self.parts = [room.view(part.shape) for room, part in zip(split, samples, strict=True)]


class Updates:
    """Keeps a sample of every weight from one step to the next."""

    def __init__(self, weights: Sequence[Tensor], large: int, device: torch.device, wide: torch.dtype) -> None:
        self._weights, self._large, self._device, self._wide = weights, large, device, wide
        self._kept: list[Tensor] | None = None
        self._buffers: tuple[_Buffer, ...] = ()
        self._changes = torch.empty(0, dtype=wide, device="cpu")
        self._views: tuple[list[int], list[Tensor]] | None = None
        self._sharded = any(is_sharded(weight) for weight in weights)
        parts = [dense(weight) for weight in weights]
        shares = [part.numel() / max(1, runs(part, SAMPLE).numel()) for part in parts]
        self.whole = torch.tensor(shares, dtype=wide, device="cpu").to(device, non_blocking=True)
        """Numbers of each weight over numbers followed."""

    @property
    def begun(self) -> bool:
        """Whether there is a sample to compare with."""
        return self._kept is not None

    def keep(self) -> None:
        """Take the first sample."""
        self._kept = self._joined() if self._device.type == "cpu" else [part.clone() for part in self._joined()]

    def squares(self, *, keep: bool) -> Tensor:
        """Return the (n,) sums of squares of the changes since the sample was taken; with `keep`, take it anew.

        Raises
        ------
        ValueError
            If no sample was taken.
        """
        if self._kept is None:
            raise ValueError("no weights were kept")
        now, old = self._joined(), self._kept
        if self._device.type == "cpu":
            self._kept = now if keep else None
            return squared_changes(now[0], old[0], self._buffers[0].sizes, self._changes, self._wide).mul_(self.whole)
        changed = list(torch._foreach_sub(now, old))
        if keep:
            torch._foreach_copy_(old, now)
        else:
            self._kept = None
        small: list[Tensor] = []
        sizes: tuple[int, ...] = ()
        if len(self._weights) > self._large:
            sizes = tuple(part.numel() for part in self._sample()[self._large :])
            small = list(changed.pop().split_with_sizes(sizes))
        return sums_of_squares([Prepared(changed, [1] * len(changed), small, sizes)], self._wide)[0] * self.whole

    def _joined(self) -> list[Tensor]:
        """Return the samples: on a CPU all in one buffer, elsewhere those of large weights, and of all small in one."""
        found = self._sample()
        if self._device.type == "cpu":
            sizes = tuple([part.numel() for part in found])
            if not self._buffers or self._buffers[0].sizes != sizes:
                self._buffers = (_Buffer(found), _Buffer(found))
                self._changes = torch.empty_like(self._buffers[0].flat)
            free = next(b for b in self._buffers if self._kept is None or b.flat is not self._kept[0])
            torch._foreach_copy_(free.parts, found)
            return [free.flat]
        small = found[self._large :]
        return [*found[: self._large], torch.cat(small)] if small else found

    def _sample(self) -> list[Tensor]:
        """Return a view of every weight (a copy, where it cannot be had as a view)."""
        if self._sharded:
            return [runs(dense(weight), SAMPLE).to(self._device) for weight in self._weights]
        pointers = [weight.data_ptr() for weight in self._weights]
        if self._views is None or self._views[0] != pointers:
            parts = [dense(weight) for weight in self._weights]
            views = [runs(part, SAMPLE).to(self._device, non_blocking=True) for part in parts]
            alike = all(view.data_ptr() == part.data_ptr() for view, part in zip(views, parts, strict=True))
            if not alike or pointers != [part.data_ptr() for part in parts]:
                return views
            self._views = (pointers, views)
        return self._views[1]
