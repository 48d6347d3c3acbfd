"""What happened since the last optimizer step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from .batches import Taken
from .forwards import Forward
from .labels import Labels


@dataclass(slots=True)
class Clip:
    """One call that clipped gradients."""

    max_norm: float | None
    """None for clipping by value."""
    before: float
    """Norm that the call returned."""
    backward_calls: int
    scaled: bool


@dataclass(slots=True, eq=False)
class Window:
    """Everything between two optimizer steps."""

    roots: list[tuple[float, float | None]] = field(default_factory=list)
    """Raw loss of each backward, and what autograd shows it was divided by last."""
    backward_calls: int = 0
    zero_grads: int = 0
    thrown: int = 0
    """Calls of zero_grad that lost gradients."""
    clips: list[Clip] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    described: list[list[Any]] = field(default_factory=list)
    """Loader, position and statistics of each batch from a loader."""
    given: list[list[int]] = field(default_factory=list)
    """Of each batch: the loader's number, and hashes of its tensors."""
    forwards: list[Forward] = field(default_factory=list)
    versions: int = -1
    """How often the weights had been changed in place at the last backward, added up."""
    scale: float | None = None
    unscaled: bool = False
    scheduler_steps: int = 0

    def add(self, taken: Taken) -> None:
        """Add a batch that a loader gave."""
        self.batches.append(taken.hash)
        self.order += [] if taken.order is None else [taken.order]
        self.described.append(taken.row)

    def to_row(self) -> dict[str, Any]:
        """Return it fit for JSON."""
        labels = [found for forward in self.forwards if (found := forward.largest()) is not None]
        cross_entropy = _mean([found.mean for found in labels])
        row: dict[str, Any] = {
            "loss": _loss(self.roots, cross_entropy),
            "objective": sum(value for value, _ in self.roots) if self.roots else None,
            "micro_batches": len(self.roots),
            "backward_calls": self.backward_calls,
            "zero_grad_calls": self.zero_grads,
            "zero_grad_after_backward": self.thrown,
            "scheduler_steps": self.scheduler_steps,
            "clip_calls": len(self.clips),
            "scale": self.scale,
            "batches": self.batches,
            "order": self.order,
            "described": self.described or [f.described for f in self.forwards if f.described],
            "given": self.given,
            "inputs": [hash_ for forward in self.forwards for hash_ in forward.inputs],
            "targets": [found.hash for forward in self.forwards for found in forward.labels],
            "samples": sum(forward.samples for forward in self.forwards),
            "moments": moments(self.forwards),
            "numbers": numbers(self.forwards),
            "cross_entropy": cross_entropy,
            "ignored": _ignored(labels),
            "shares": self.shares(),
            **_modes(self.forwards),
        }
        if self.clips:
            last = self.clips[-1]
            row["clip"] = [last.max_norm, last.before, last.backward_calls, last.scaled]
        return row

    def shares(self) -> dict[str, list[float]]:
        """Return the tokens of each expert, added up over the training forwards."""
        found: dict[str, Tensor] = {}
        for forward in self.forwards:
            for name, counts in forward.shares.items():
                found[name] = found[name] + counts if name in found else counts
        return {name: counts.tolist() for name, counts in found.items()}


def moments(forwards: Sequence[Forward]) -> list[float] | None:
    """Return mean and standard deviation of all floating-point inputs together."""
    return pooled([part for forward in forwards for part in forward.moments])


def numbers(forwards: Sequence[Forward]) -> int:
    """Return how many numbers all floating-point inputs have together."""
    return sum(n for forward in forwards for n, _, _ in forward.moments)


def pooled(parts: Sequence[tuple[int, float, float]]) -> list[float] | None:
    """Return mean and standard deviation of several tensors together, from count, mean and variance of each."""
    count = sum(n for n, _, _ in parts)
    if not count:
        return None
    mean = sum(n * m for n, m, _ in parts) / count
    variance = sum(n * (v + (m - mean) ** 2) for n, m, v in parts) / count
    return [mean, math.sqrt(variance) if variance >= 0 else math.nan]


def evaluation(forwards: Sequence[Forward]) -> dict[str, Any] | None:
    """Summarise forwards that did not train; None if nothing was seen."""
    labels = [found for forward in forwards for found in forward.labels if found.count]
    count = sum(found.count for found in labels)
    inputs, losses = moments(forwards), [loss for forward in forwards for loss in forward.losses]
    outputs = [forward.output for forward in forwards if forward.output is not None]
    targets = sum(n for n, _ in losses)
    if not forwards:
        return None
    mean = sum(found.mean * found.count for found in labels) / count if count else None
    return {"cross_entropy": mean, "labels": count, "moments": inputs, "output": pooled(outputs)} | {
        "loss": sum(n * value for n, value in losses) / targets if targets else None,
        "numbers": [sum(n for n, _, _ in outputs), targets, numbers(forwards)],
        "forwards": len(forwards),
        "with_gradient": sum(forward.gradient for forward in forwards),
        "in_train_mode": sum(bool(forward.train_modules) for forward in forwards),
    }


def _loss(roots: Sequence[tuple[float, float | None]], cross_entropy: float | None) -> float | None:
    """Return the mean raw loss of the micro-batches, whether or not they were divided by their number."""
    if not roots:
        return None
    values = [value for value, _ in roots]
    added, mean = sum(values), sum(values) / len(values)
    if len(values) == 1 or not math.isfinite(added):
        return mean
    divisors = [divisor for _, divisor in roots]
    if all(divisor == len(values) for divisor in divisors):
        return added
    if all(divisor is not None for divisor in divisors) and cross_entropy is not None:
        # Divided by a number of tokens or batches: of the two readings, the one nearer the cross entropy.
        return min(added, mean, key=lambda value: abs(value - cross_entropy))
    return mean


def _modes(forwards: Sequence[Forward]) -> dict[str, Any]:
    resting: dict[int, str] = {}
    training: set[int] = set()
    for forward in forwards[-1:]:
        resting |= forward.eval_modules
        training |= forward.train_modules
    return {"eval_modules": sorted(resting.values()), "train_modules": len(training)}


def _ignored(labels: Sequence[Labels]) -> float | None:
    count = sum(found.count + found.ignored for found in labels)
    return sum(found.ignored for found in labels) / count if count else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
