"""How much the optimizer changed each weight, on a sample of its numbers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .moments import Prepared
from .tensors import dense, is_sharded, runs

SAMPLE = 4_096
"""Numbers of a weight whose change is followed; a smaller weight is followed whole."""


class Updates:
    """Keeps a sample of every weight from one step to the next."""

    def __init__(self, weights: Sequence[Tensor], large: int, device: torch.device, wide: torch.dtype) -> None:
        self._weights, self._large, self._device = weights, large, device
        self._kept: list[Tensor] | None = None
        self._views: tuple[list[int], list[Tensor]] | None = None
        self._sharded = any(is_sharded(weight) for weight in weights)
        parts = [dense(weight) for weight in weights]
        shares = [part.numel() / max(1, runs(part, SAMPLE).numel()) for part in parts]
        self.whole = torch.tensor(shares, dtype=wide).to(device, non_blocking=True)
        """Numbers of each weight over numbers followed."""

    @property
    def begun(self) -> bool:
        """Whether there is a sample to compare with."""
        return self._kept is not None

    def keep(self) -> None:
        """Take the first sample."""
        self._kept = [part.clone() for part in self._joined()]

    def changed(self, *, keep: bool) -> Prepared:
        """Return the changes since the sample was taken; with `keep`, take it anew.

        Raises
        ------
        ValueError
            If no sample was taken.
        """
        if self._kept is None:
            raise ValueError("no weights were kept")
        now, old = self._joined(), self._kept
        changed = list(torch._foreach_sub(now, old))
        if keep:
            torch._foreach_copy_(old, now)
        else:
            self._kept = None
        if len(self._weights) == self._large:
            return Prepared(changed, [1] * len(changed), [])
        sizes = [part.numel() for part in self._sample()[self._large :]]
        return Prepared(changed[:-1], [1] * self._large, list(changed[-1].split_with_sizes(sizes)))

    def _joined(self) -> list[Tensor]:
        """Return the samples of large weights, and those of all small ones in one."""
        found = self._sample()
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
