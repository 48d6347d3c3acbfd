"""What is known of one optimizer: its options, its state, and the gradients of its last step."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from .norms import Updates, gradient_norms, host, norms, total
from .sink import pack

FIRST_MOMENTS, SECOND_MOMENTS = ("exp_avg", "momentum_buffer"), ("exp_avg_sq", "square_avg", "sum")
COUNTERS = 64
"""Parameters whose step counter is read; they count together."""
_VARIES = frozenset({"lr", "initial_lr"})


class Memory:
    """What optimizers, old and new, knew of each parameter: one that is new to all of them loses nothing."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Tensor], float]] = {}
        self._stepped: dict[int, weakref.ref[Tensor]] = {}

    def lost(self, parameters: Sequence[Tensor], states: Sequence[dict[str, Any] | None]) -> int:
        """Return of how many parameters the step counter fell since the last step on them.

        Parameters
        ----------
        states : sequence of dict or None
            After the step, one for each parameter; those without a counter are not judged.
        """
        found = 0
        every = max(1, len(parameters) // COUNTERS)
        for parameter, state in list(zip(parameters, states, strict=True))[::every]:
            if not state or "step" not in state:
                continue
            counter, (ref, before) = float(state["step"]), self._known.get(id(parameter), (None, 0.0))
            found += ref is not None and ref() is parameter and counter < before
            self._known[id(parameter)] = (weakref.ref(parameter), counter)
        return found

    def is_new(self, parameters: Sequence[Tensor]) -> bool:
        """Tell whether no optimizer has stepped any of `parameters` before, and note that one does now."""
        known = [(entry := self._stepped.get(id(p))) is not None and entry() is p for p in parameters]
        self._stepped.update((id(p), weakref.ref(p)) for p in parameters)
        return not any(known)


class Tracked:
    """One optimizer."""

    def __init__(self, number: int, memory: Memory) -> None:
        self.number, self.memory = number, memory
        self.parameters: list[Tensor] = []
        self.updates = Updates()
        self.raw: list[float] = []
        """Norm of each gradient before clipping; -1 where there is none."""
        self.applied: list[float] = []
        self.rates: list[float] = []
        self.stale = 0.0
        """Norm of the gradients of its last step that were still there at the next backward."""
        self.counters: list[list[float]] | None = None
        """What experts counted until this step; see :mod:`.counters`."""
        self.in_closure = False
        self.steps = 0
        self._cleared = True
        self._is_new: bool | None = None
        """Whether it began with parameters that no optimizer had stepped; None before its first step."""
        self._described: tuple[Sequence[str], Sequence[dict[str, Any]]] | None = None

    def look_for_stale(self, optimizer: Optimizer) -> None:
        """Look, at a backward, whether the gradients of the last step are still there.

        They are cleared once they have been seen to be none or zero since that step; until the optimizer's next
        step they may be (another optimizer's backward comes first in a GAN).
        """
        if self._cleared or self.in_closure:
            return
        norm = total(gradient_norms([p for group in optimizer.param_groups for p in group["params"]]))
        self._cleared = norm == 0.0
        self.stale = 0.0 if self._cleared else self.stale or norm

    def stepped(self) -> None:
        """Note that the step has been taken."""
        self.steps += 1
        self._cleared, self.stale = False, 0.0

    def has_changed(self, names: Sequence[str], options: Sequence[dict[str, Any]]) -> bool:
        """Tell whether names or options differ from those at the last call."""
        now = (names, options)
        changed = self._described != now
        self._described = now
        return changed

    def describe(self, optimizer: Optimizer) -> dict[str, Any]:
        """Return class and size."""
        sizes = [len(group["params"]) for group in optimizer.param_groups]
        return {"class": type(optimizer).__name__, "tensors": len(self.parameters), "sizes": sizes}

    def to_row(self, optimizer: Optimizer, updates: Sequence[float], *, skipped: bool) -> dict[str, Any]:
        """Return what is known of a step, fit for JSON."""
        return {
            "optimizer": self.number,
            "raw": pack(self.raw),
            "applied": pack(self.applied),
            "weights": pack(self.updates.weights),
            "updates": pack(updates),
            "rates": self.rates,
            "decay": max((float(g.get("weight_decay", 0.0) or 0.0) for g in optimizer.param_groups), default=0.0),
            "stale": self.stale,
            # A fused optimizer finds infinities by itself, and leaves the weights as they were.
            "skipped": skipped or bool(getattr(optimizer, "found_inf", None)),
            "counters": self.counters,
            **self.state_of(optimizer),
        }

    def _begins_anew(self) -> bool:
        """Tell whether this optimizer is about parameters that none had stepped before it."""
        if self._is_new is None:
            self._is_new = self.memory.is_new(self.parameters)
        return self._is_new

    def state_of(self, optimizer: Optimizer) -> dict[str, Any]:
        """Return norms of the moments, the smallest step counter, and how many parameters have state."""
        states = [optimizer.state[p] for p in self.parameters if p in optimizer.state]
        with torch.no_grad():
            moments = [_tensors(states, names) for names in (FIRST_MOMENTS, SECOND_MOMENTS)]
            first, second = [total(host(norms(tensors))) if tensors else None for tensors in moments]
            counters = [float(s["step"]) for s in states[:: max(1, len(states) // COUNTERS)] if "step" in s]
        return {
            "m": first,
            "v": second,
            "state_step": min(counters, default=None),
            "fresh": self._begins_anew(),
            "state_lost": self.memory.lost(self.parameters, [optimizer.state.get(p) for p in self.parameters]),
            "state_tensors": sum(1 for state in states if state),
        }


def _tensors(states: Sequence[dict[str, Any]], names: Sequence[str]) -> list[Tensor]:
    found = []
    for state in states:
        value = next((state[name] for name in names if isinstance(state.get(name), Tensor)), None)
        if value is not None:
            found.append(value)
    return found


def rates_of(optimizer: Optimizer) -> list[float]:
    """Return the learning rate of each group that trains anything."""
    groups = [g for g in optimizer.param_groups if any(p.requires_grad for p in g["params"])]
    return [float(g.get("lr", math.nan)) for g in groups or optimizer.param_groups]


def options_of(optimizer: Optimizer) -> list[dict[str, Any]]:
    """Return the scalar options of each group, without the learning rate, which is a series."""
    return [_scalars(group) for group in optimizer.param_groups]


def _scalars(group: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in group.items():
        if key in _VARIES or key == "params":
            continue
        if isinstance(value, Tensor) and value.numel() == 1:
            value = float(value)
        if value is None or isinstance(value, (bool, int, float, str)):
            found[key] = value
        elif key == "betas" and isinstance(value, (tuple, list)):
            found.update({f"beta{place}": float(beta) for place, beta in enumerate(value, 1)})
    return found
