"""What a detector is: a record of data and one pure function."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Generic, TypeVar

from trainscope.core.finding import Finding
from trainscope.core.metrics import Kind, is_reinforcement, kind
from trainscope.core.run import Run, Series

P = TypeVar("P")


class Lack(StrEnum):
    """What kind of thing a detector missed."""

    DATA = "data"
    """More points, or a metric that a log may have."""
    RECORDING = "recording"
    """What only a run that trainscope recorded has."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A detector could not judge this run. "Nothing to judge" is not "healthy"."""

    reason: str
    """What was missing, in words fit for a report: ``needs eval/loss``."""
    detector: str = ""
    kind: Lack = Lack.DATA


@dataclass(frozen=True, slots=True)
class Detector(Generic[P]):
    """One pathology and the function that finds it."""

    id: str
    """Permanent, snake_case, the module's own name; never reused."""
    title: str
    """A few words: "Loss spike"."""
    needs: tuple[str, ...]
    """Canonical metric names it reads, for `trainscope detectors`."""
    params: P
    """Frozen dataclass of thresholds; the defaults."""
    detect: Callable[[Run, P], list[Finding] | Skipped]
    """Pure: a run and thresholds to findings, or the reason why nothing could be judged."""

    @property
    def page(self) -> str:
        """The whole documentation: the docstring of the module that defines `detect`."""
        return sys.modules[self.detect.__module__].__doc__ or ""

    def parameters(self) -> dict[str, Any]:
        """Return parameter names and default values."""
        return {f.name: getattr(self.params, f.name) for f in fields(self.params)}  # type: ignore[arg-type]


MOST = 10
"""Most findings of one detector on one series; the worst are kept and the message counts the rest."""


def training_losses(run: Run, *, adversarial: bool = True) -> list[Series] | Skipped:
    """Return the series that are this run's training objective.

    ``train/loss`` where the run has it; else every part of a loss; nothing for reinforcement learning,
    where a loss may be 0 by construction or grow with the returns.
    """
    if is_reinforcement(tuple(run.series)):
        return Skipped("the loss of a reinforcement-learning run need not fall")
    main = run.get("train/loss")
    if main is not None and not adversarial and several_objectives(run):
        return Skipped("the sum of what several optimizers follow need not fall")
    if main is not None:
        return [main]
    kinds = {Kind.LOSS, Kind.LOSS_PART} | ({Kind.ADVERSARIAL_LOSS} if adversarial else set())
    parts = [s for name, s in run.series.items() if kind(name) in kinds and len(s)]
    return parts or Skipped("needs train/loss")


def needs_smoke(run: Run, *names: str) -> Skipped | None:
    """Return why a detector of recorded facts has nothing to judge, None if it has.

    Parameters
    ----------
    names : str
        Series of which at least one must be there.
    """
    if "smoke.steps" not in run.config:
        return Skipped("needs a run recorded with trainscope smoke or trainscope ci", kind=Lack.RECORDING)
    if names and all(run.get(name) is None for name in names):
        return Skipped(f"needs {' or '.join(names)}")
    return None


def single_optimizer(run: Run) -> bool:
    """Tell whether one optimizer steps, so that an order of calls within a step is plain."""
    steps = run.get("smoke/optimizer_steps")
    return steps is None or bool((steps.value <= 1).all())


def several_objectives(run: Run) -> bool:
    """Tell whether several optimizers step, each on a loss of its own: a generator and its critic, mostly."""
    second = run.get("smoke/objective_1")
    return second is not None and len(second) > 0


def is_game(run: Run) -> bool:
    """Tell whether the losses are those of players, or their sum: they drift, and need not fall."""
    return several_objectives(run) or any(kind(name) is Kind.ADVERSARIAL_LOSS for name in run.series)


def by_kind(run: Run, *kinds: Kind) -> list[Series]:
    """Return the non-empty series of these kinds, in the run's order."""
    return [s for name, s in run.series.items() if len(s) and kind(name) in kinds]


def number(value: float) -> str:
    """Write a number for a sentence: four significant digits, no trailing zeros."""
    return f"{value:.4g}"
