"""What a forward pass shows: inputs, modes, labels, routing.

Which forwards are training is known only at the backward: the last one before it, and any other in train mode since
the backward before. A forward without gradient is evaluation.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ...probe.routing import expert_counts
from . import hashing
from .labels import Labels
from .rows import Distinct, keys_of


@dataclass(slots=True, eq=False)
class Forward:
    """One pass through the outermost module, and what followed until the next."""

    gradient: bool
    training: bool
    inputs: list[int] = field(default_factory=list)
    samples: int = 0
    root: int = -1
    """Which of the outermost modules; -1 for a copy of one, such as an average of its weights."""
    rows: list[int] = field(default_factory=list)
    """A key of each sample."""
    moments: list[tuple[int, float, float]] = field(default_factory=list)
    """Of each floating-point input: numbers, mean, variance."""
    described: list[Any] = field(default_factory=list)
    """What the inputs look like, where no loader gave them."""
    eval_modules: dict[int, str] = field(default_factory=dict)
    train_modules: set[int] = field(default_factory=set)
    labels: list[Labels] = field(default_factory=list)
    output: tuple[int, float, float] | None = None
    """Of a forward without gradient: numbers in its first floating-point output, mean, variance."""
    losses: list[tuple[int, float]] = field(default_factory=list)
    """Numbers in the target, and mean value, of losses without class labels; in forwards without gradient only."""
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
        self._different = Distinct()

    def enter(self, *, training: bool, inputs: Sequence[Tensor], root: int = 0) -> Forward:
        """Begin a pass through the outermost module."""
        forward = Forward(torch.is_grad_enabled(), training, root=root)
        forward.rows = keys_of(inputs)
        for tensor in inputs:
            forward.samples = forward.samples or (tensor.shape[0] if tensor.dim() else 1)
            forward.inputs.append(hashing.of_tensor(tensor))
            found = moments_of(tensor)
            if found is not None:
                forward.moments.append(found)
        self._inside = forward
        (self._pending if forward.gradient else self._evaluations).append(forward)
        return forward

    @property
    def is_inside(self) -> bool:
        """Whether a pass is under way."""
        return self._inside is not None

    def leave(self) -> None:
        """End it. What comes before the next one, such as the loss, still belongs to it."""
        self._inside = None

    def add_shares(self, name: str, counts: Tensor) -> None:
        """Add the tokens that a router sent to each expert."""
        shares = self.current().shares
        shares[name] = shares[name] + counts if name in shares else counts

    def current(self) -> Forward:
        """Return the forward that what happens now belongs to."""
        if self._inside is not None:
            return self._inside
        kept = self._pending if torch.is_grad_enabled() else self._evaluations
        if not kept:
            kept.append(Forward(torch.is_grad_enabled(), training=True))
        return kept[-1]

    def waiting(self) -> int:
        """Return how many forwards with gradients no backward has claimed yet."""
        return len(self._pending)

    def trained(self) -> list[Forward]:
        """Return the training forwards since the last call; the others become evaluations."""
        pending, self._pending = self._pending, []
        chosen = [forward for place, forward in enumerate(pending) if forward.training or place == len(pending) - 1]
        self._evaluations += [forward for forward in pending if forward not in chosen]
        for forward in chosen:
            self._different.see(forward.root, forward.rows)
        return chosen

    def evaluated_shares(self) -> dict[str, Tensor]:
        """Return the tokens of each expert in the evaluations since the last call of `evaluated`."""
        found: dict[str, Tensor] = {}
        for forward in self._evaluations:
            for name, counts in forward.shares.items():
                found[name] = found[name] + counts if name in found else counts
        return found

    def end(self) -> dict[str, object]:
        """Describe what came to light."""
        return {"rows": self._different.counts(), "rows_evaluated": self._different.evaluated()}

    def evaluated(self) -> list[Forward]:
        """Return the evaluations since the last call."""
        found, self._evaluations = self._evaluations, []
        for forward in found:
            self._different.evaluate(forward.rows)
        return found


def moments_of(tensor: Tensor) -> tuple[int, float, float] | None:
    """Return numbers, mean and variance of a floating-point tensor on the CPU, None of any other."""
    if not tensor.is_floating_point() or not tensor.numel() or tensor.device.type != "cpu":
        return None
    values = tensor.detach()
    values = values if values.dtype == torch.float64 else values.float()
    variance, mean = torch.var_mean(values, correction=0)
    return tensor.numel(), float(mean), float(variance)


def tensors_in(*values: object) -> Iterator[Tensor]:
    """Yield the tensors in arguments, in order."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, dict) or (hasattr(value, "data") and hasattr(value, "items")):
            yield from tensors_in(*value.values())  # type: ignore[attr-defined]
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(*value)


class Hook:
    """A hook on a module, of which a copied or pickled model keeps nothing."""

    def __reduce__(self) -> tuple[object, ...]:
        # Something of the standard library that takes any arguments and does nothing: the model must load anywhere.
        return (getattr, (contextlib.nullcontext(), "__exit__"))

    def __deepcopy__(self, _memo: object) -> Hook:
        return self


class UsedHook(Hook):
    """Notes that a module ran."""

    def __init__(self, name: str, used: set[str]) -> None:
        self._name, self._used = name, used

    def __call__(self, *_arguments: object) -> None:
        """Note it."""
        if not torch.compiler.is_compiling():
            self._used.add(self._name)


class RouterHook(Hook):
    """Counts the tokens of each expert."""

    def __init__(self, name: str, chosen: int, recorder_sees: Callable[[str, Tensor], None]) -> None:
        self._name, self._chosen, self._note = name, chosen, recorder_sees

    def __call__(self, module: torch.nn.Module, _args: object, output: object) -> None:
        """Note where one forward of the router sends its tokens."""
        if torch.compiler.is_compiling():
            return
        with torch.no_grad():
            found = expert_counts(module, output, self._chosen)
        if found is not None:
            self._note(self._name, found)
