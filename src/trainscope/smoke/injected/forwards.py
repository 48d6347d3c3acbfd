"""What a forward pass shows: inputs, modes, labels, routing.

Which forwards are training is known only at the backward: the last one before it, and any other in train mode since
the backward before. A forward without gradient is evaluation.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ...probe.routing import expert_counts
from . import hashing


@dataclass(slots=True, eq=False)
class Labels:
    """One call of a classification loss."""

    classes: int
    count: int
    """Labels that counted."""
    ignored: int
    """Labels equal to ``ignore_index``."""
    mean: float
    """Mean cross entropy of one label, nat."""
    hash: int
    histogram: Tensor
    """(classes,) int64, on the CPU."""
    reduction: str
    smoothing: float


@dataclass(slots=True, eq=False)
class Forward:
    """One pass through the outermost module, and what followed until the next."""

    gradient: bool
    training: bool
    inputs: list[int] = field(default_factory=list)
    samples: int = 0
    moments: list[tuple[int, float, float]] = field(default_factory=list)
    """Of each floating-point input: numbers, mean, variance."""
    eval_modules: dict[int, str] = field(default_factory=dict)
    train_modules: set[int] = field(default_factory=set)
    labels: list[Labels] = field(default_factory=list)
    shares: dict[str, Tensor] = field(default_factory=dict)

    def largest(self) -> Labels | None:
        """Return the loss call with the most labels."""
        return max(self.labels, key=lambda found: found.count, default=None)


class Forwards:
    """Collects forwards until a backward says which of them trained."""

    def __init__(self) -> None:
        self._pending: list[Forward] = []
        self._evaluations: list[Forward] = []
        self._inside: Forward | None = None

    def enter(self, *, training: bool, inputs: Iterator[Tensor]) -> Forward:
        """Begin a pass through the outermost module."""
        forward = Forward(torch.is_grad_enabled(), training)
        for tensor in inputs:
            forward.samples = forward.samples or (tensor.shape[0] if tensor.dim() else 1)
            forward.inputs.append(hashing.of_tensor(tensor))
            if tensor.is_floating_point() and tensor.numel() and tensor.device.type == "cpu":
                values = tensor.detach()
                values = values if values.dtype == torch.float64 else values.float()
                variance, mean = torch.var_mean(values, correction=0)
                forward.moments.append((tensor.numel(), float(mean), float(variance)))
        self._inside = forward
        (self._pending if forward.gradient else self._evaluations).append(forward)
        return forward

    def leave(self) -> None:
        """End it. What comes before the next one, such as the loss, still belongs to it."""
        self._inside = None

    def current(self) -> Forward:
        """Return the forward that what happens now belongs to."""
        if self._inside is not None:
            return self._inside
        kept = self._pending if torch.is_grad_enabled() else self._evaluations
        if not kept:
            kept.append(Forward(torch.is_grad_enabled(), training=True))
        return kept[-1]

    def trained(self) -> list[Forward]:
        """Return the training forwards since the last call; the others become evaluations."""
        pending, self._pending = self._pending, []
        chosen = [forward for place, forward in enumerate(pending) if forward.training or place == len(pending) - 1]
        self._evaluations += [forward for forward in pending if forward not in chosen]
        return chosen

    def evaluated(self) -> list[Forward]:
        """Return the evaluations since the last call."""
        found, self._evaluations = self._evaluations, []
        return found


def labels_of(
    logits: Tensor, target: Tensor, loss: Tensor, *, ignore: int, reduction: str, smoothing: float
) -> Labels | None:
    """Describe a call of ``cross_entropy`` or ``nll_loss``; None where the targets are no class indices."""
    if target.is_floating_point() or not logits.dim() or not target.numel():
        return None
    classes = logits.shape[1] if logits.dim() > 1 else logits.shape[0]
    host = target.detach().reshape(-1).cpu()
    valid = host[host != ignore]
    count = valid.numel()
    value = float(loss.detach().float().sum())
    mean = value if reduction == "mean" else value / count if count else math.nan
    histogram = torch.bincount(valid, minlength=classes) if count else torch.zeros(classes, dtype=torch.int64)
    hash_ = hashing.of_tensor(host, limit=None)
    return Labels(classes, count, host.numel() - count, mean, hash_, histogram, reduction, smoothing)


def tensors_in(*values: object) -> Iterator[Tensor]:
    """Yield the tensors in arguments, in order."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, dict) or (hasattr(value, "data") and hasattr(value, "items")):
            yield from tensors_in(*value.values())  # type: ignore[attr-defined]
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(*value)


class RouterHook:
    """Counts the tokens of each expert; a copied or pickled model keeps nothing of it."""

    def __init__(self, name: str, chosen: int, forwards: Forwards, active: list[bool]) -> None:
        self._name, self._chosen, self._forwards, self._active = name, chosen, forwards, active

    def __call__(self, module: torch.nn.Module, _args: object, output: object) -> None:
        if torch.compiler.is_compiling() or not self._active[0]:
            return
        with torch.no_grad():
            found = expert_counts(module, output, self._chosen)
        if found is None:
            return
        shares = self._forwards.current().shares
        shares[self._name] = shares[self._name] + found if self._name in shares else found

    def __reduce__(self) -> tuple[object, ...]:
        # Something of the standard library that takes three arguments and does nothing: the model must load anywhere.
        return (getattr, (contextlib.nullcontext(), "__exit__"))

    def __deepcopy__(self, _memo: object) -> RouterHook:
        return self
