"""The attention of some training forwards: the largest logit and the mean entropy, where attention can be seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ...probe.attention import Attention
from .guard import Guard
from .models import Models

EVERY = 10
"""Steps from one that is looked at to the next; the same in every run, so that two runs have common steps."""


class Attending:
    """Watches the first training forward of every tenth step.

    Parameters
    ----------
    models : Models
        Give the names by which attention knows its modules.
    guard : Guard
    """

    def __init__(self, models: Models, guard: Guard) -> None:
        self._models = models
        self._names: dict[int, str] = {}

        def guarded(function: Callable[..., None]) -> Callable[..., None]:
            return guard.hook("attention", function)

        self._attention = Attention(self._names, guarded)
        self._step = -1
        self._watching = False

    def enter(self, step: int, *, training: bool) -> None:
        """Begin to watch if this is the first training forward of a step that is looked at."""
        if step % EVERY or step == self._step or not training or not torch.is_grad_enabled():
            return
        self._step, self._watching = step, True
        self._names.update(self._models.module_names())
        self._attention.enter()

    def leave(self) -> None:
        """Stop watching."""
        if self._watching:
            self._watching = False
            self._attention.leave()

    @property
    def dropped(self) -> set[float]:
        """Dropout rates that fused attention was given in the forwards that were watched."""
        return self._attention.dropped

    def collect(self) -> dict[str, Any] | None:
        """Return the largest logit, the mean entropy in nat and the number of modules; None if none was seen."""
        found = self._attention.collect()
        if found is None:
            return None
        names, _, rows = found
        values = rows.double().cpu()
        return {"logit_max": float(values[:, 0].max()), "entropy": float(values[:, 1].mean()), "modules": len(names)}
