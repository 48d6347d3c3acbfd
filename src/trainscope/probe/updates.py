"""How much the optimizer changed each weight, on a sample of its numbers.

On a CPU a step only copies its sample; the changes of many steps are worked out together. A call of torch or NumPy
whose code has left the cache, as all of it has after a training step, costs more than the numbers it works on.
"""

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
MOST_WAITING = 4_194_304
"""Numbers in the samples that wait, 16 MiB; beyond that a sample waits for the next one only."""
LONGEST_WAIT = 32
"""Steps that wait: as many as are stored together, and a few more."""


class _Buffer:
    """Room for all samples side by side."""

    def __init__(self, samples: Sequence[Tensor], sizes: tuple[int, ...]) -> None:
        kinds = {part.dtype for part in samples}
        self.flat = torch.empty(
            sum(sizes), dtype=torch.float64 if torch.float64 in kinds else torch.float32, device="cpu"
        )
        self.sizes = sizes
        split = self.flat.split_with_sizes(sizes)
        self.parts = [room.view(part.shape) for room, part in zip(split, samples, strict=True)]


class Updates:
    """Keeps a sample of every weight from one step to the next."""

    def __init__(self, weights: Sequence[Tensor], large: int, device: torch.device, wide: torch.dtype) -> None:
        self._weights, self._large, self._device, self._wide = weights, large, device, wide
        self._kept: _Buffer | list[Tensor] | None = None
        self._spare: list[_Buffer] = []
        self._waiting: list[tuple[_Buffer, _Buffer, dict[str, Tensor]]] = []
        self._room = torch.empty(0, device="cpu")
        self._views: tuple[list[int], list[Tensor], tuple[int, ...]] | None = None
        self._sharded = any(is_sharded(weight) for weight in weights)
        parts = [dense(weight) for weight in weights]
        shares = [part.numel() / max(1, runs(part, SAMPLE).numel()) for part in parts]
        self.whole = torch.tensor(shares, dtype=wide, device="cpu").to(device, non_blocking=True)
        """Numbers of each weight over numbers followed."""

    @property
    def begun(self) -> bool:
        """Whether there is a sample to compare with."""
        return self._kept is not None

    @property
    def may_wait(self) -> bool:
        """Whether changes can be worked out later: on a CPU, where no other rank waits for them."""
        return self._device.type == "cpu" and not self._sharded

    def keep(self) -> None:
        """Take the first sample."""
        self._kept = self._buffered() if self._device.type == "cpu" else [part.clone() for part in self._joined()]

    def later(self, vectors: dict[str, Tensor], *, keep: bool) -> None:
        """Put what :meth:`squares` returns into `vectors`, as ``update``, at the next :meth:`finish` at the latest.

        Raises
        ------
        ValueError
            If no sample was taken on this CPU.
        """
        if not isinstance(self._kept, _Buffer):
            raise ValueError("no weights were kept")
        old, new = self._kept, self._buffered()
        self._waiting.append((old, new, vectors))
        self._kept = new if keep else None
        if len(self._waiting) >= min(LONGEST_WAIT, max(1, MOST_WAITING // max(1, new.flat.numel()))):
            self.finish()

    def finish(self) -> None:
        """Work out all that waits."""
        waiting, self._waiting = self._waiting, []
        for old, new, vectors in waiting:
            if self._room.shape != new.flat.shape or self._room.dtype != new.flat.dtype:
                self._room = torch.empty_like(new.flat)
            changes = squared_changes(new.flat, old.flat, new.sizes, self._room, self._wide)
            vectors["update"] = changes.mul_(self.whole)
        self._spare += [old for old, _, _ in waiting]
        if waiting and self._kept is None:
            self._spare.append(waiting[-1][1])

    def squares(self, *, keep: bool) -> Tensor:
        """Return the (n,) sums of squares of the changes since the sample was taken; with `keep`, take it anew.

        Raises
        ------
        ValueError
            If no sample was taken.
        """
        if isinstance(self._kept, _Buffer):
            found: dict[str, Tensor] = {}
            self.later(found, keep=keep)
            self.finish()
            return found["update"]
        if self._kept is None:
            raise ValueError("no weights were kept")
        now, old = self._joined(), self._kept
        changed = list(torch._foreach_sub(now, old))
        if keep:
            torch._foreach_copy_(old, now)
        else:
            self._kept = None
        small: list[Tensor] = []
        sizes: tuple[int, ...] = ()
        if len(self._weights) > self._large:
            sizes = self._sample()[1][self._large :]
            small = list(changed.pop().split_with_sizes(sizes))
        return sums_of_squares([Prepared(changed, [1] * len(changed), small, sizes)], self._wide)[0] * self.whole

    def _buffered(self) -> _Buffer:
        """Return the samples in one buffer on the CPU."""
        found, sizes = self._sample()
        buffer = self._spare.pop() if self._spare else None
        if buffer is None or buffer.sizes != sizes:
            self._spare.clear()
            buffer = _Buffer(found, sizes)
        torch._foreach_copy_(buffer.parts, found)
        return buffer

    def _joined(self) -> list[Tensor]:
        """Return the samples of large weights, and of all small ones in one."""
        found, _ = self._sample()
        small = found[self._large :]
        return [*found[: self._large], torch.cat(small)] if small else found

    def _sample(self) -> tuple[list[Tensor], tuple[int, ...]]:
        """Return a view of every weight (a copy, where it cannot be had as a view), and their sizes."""
        if self._sharded:
            parts = [runs(dense(weight), SAMPLE).to(self._device) for weight in self._weights]
            return parts, tuple([part.numel() for part in parts])
        pointers = [weight.data_ptr() for weight in self._weights]
        if self._views is None or self._views[0] != pointers:
            parts = [dense(weight) for weight in self._weights]
            views = [runs(part, SAMPLE).to(self._device, non_blocking=True) for part in parts]
            sizes = tuple([view.numel() for view in views])
            alike = all(view.data_ptr() == part.data_ptr() for view, part in zip(views, parts, strict=True))
            if not alike or pointers != [part.data_ptr() for part in parts]:
                return views, sizes
            self._views = (pointers, views, sizes)
        return self._views[1], self._views[2]
