"""Takes back the updates that a replay leaves out, for a script that makes its batches itself.

Such a script cannot be given another batch: the next one comes from its own random generator, and every number after
it depends on that one having been drawn. So it trains as ever on the batches to leave out, and once the optimizer has
stepped, weights, the optimizer's state and the model's buffers are put back to what they were. All that the script
draws, counts and schedules goes on as in the original.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from .forwards import Forward


class Omission:
    """Numbers the batches of a script without a loader, and undoes the steps on some.

    Parameters
    ----------
    positions : iterable of int
        Which: how many training forwards the script made before.
    """

    def __init__(self, positions: Iterable[int] = ()) -> None:
        self._drop = frozenset(positions)
        self._next = 0
        self._follows = False
        """Whether the optimizer that stepped last was put back; one that steps on the same backward is too."""
        self._buffers: list[tuple[Tensor, Tensor]] | None = None
        self._weights: list[tuple[Tensor, Tensor]] | None = None
        self._state: dict[Any, Any] = {}

    def number(self, forwards: Sequence[Forward]) -> None:
        """Give forwards that turned out to train their positions."""
        for forward in forwards:
            if forward.described:
                forward.described[1] = self._next
                self._next += 1

    def enter(self, root: nn.Module, waiting: int) -> None:
        """Note the buffers of a model before a forward that may be on a batch to leave out.

        Parameters
        ----------
        waiting : int
            Forwards before this one that no backward has claimed yet.
        """
        if self._drop and self._buffers is None and self._next + waiting in self._drop:
            self._buffers = _kept(root.buffers())

    def is_due(self, forwards: Sequence[Forward]) -> bool:
        """Tell whether a step on these forwards is one to leave out."""
        if not self._drop:
            return False
        return any(position in self._drop for position in _positions(forwards)) if forwards else self._follows

    def before_step(self, optimizer: Optimizer, forwards: Sequence[Forward]) -> None:
        """Note weights and state, if the step may be one to leave out."""
        # A closure makes its forward inside the step.
        if self.is_due(forwards) or self._next in self._drop:
            self._weights = _kept(p for group in optimizer.param_groups for p in group["params"])
            self._state = {key: copy.deepcopy(state) for key, state in optimizer.state.items()}

    def after_step(self, optimizer: Optimizer, forwards: Sequence[Forward]) -> list[tuple[int, int]] | None:
        """Put everything back after a step to leave out.

        Returns
        -------
        list of (int, int), optional
            Position, and hash of the inputs, of the batches it was about; None if the step stands.
        """
        due = self.is_due(forwards)
        self._follows = due
        weights, self._weights = self._weights, None
        state, self._state = self._state, {}
        buffers, self._buffers = self._buffers, None
        if not due:
            return None
        if weights is None:
            raise RuntimeError("a step to leave out was not foreseen")
        with torch.no_grad():
            for tensor, before in (*weights, *(buffers or ())):
                tensor.copy_(before)
        optimizer.state.clear()
        optimizer.state.update(state)
        return [
            (f.described[1], f.inputs[0] if f.inputs else 0)
            for f in forwards
            if f.described and f.described[1] in self._drop
        ]


def _positions(forwards: Sequence[Forward]) -> list[int]:
    return [forward.described[1] for forward in forwards if forward.described]


def _kept(tensors: Iterable[Tensor]) -> list[tuple[Tensor, Tensor]]:
    return [(tensor, tensor.detach().clone()) for tensor in tensors]
