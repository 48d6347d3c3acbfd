"""The words of an explanation: signs of trouble, the order causes come in, and the story they make.

:mod:`trainscope.diagnosis.story` writes stories; the replay planner, the reports and the site read them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum


class Stage(IntEnum):
    """Where in a training step a sign shows; what is earlier can cause what is later, never the reverse."""

    DATA = 1
    SCHEDULE = 2
    """Learning rate, loss scale and everything else that is set from outside."""
    UPDATE = 3
    """The optimizer: update size, moments, RMS_t, weight norm."""
    GRADIENT = 4
    ACTIVATION = 5
    """Activations, attention, routing and addressing."""
    LOSS = 6
    EVAL = 7


class Cause(StrEnum):
    """What broke a run. The replay planner decides by it whether skipping batches can help."""

    DATA = "data"
    """Bad batches: garbage, repetition, padding."""
    SCHEDULE = "schedule"
    """The learning rate left its schedule, or was too high from the start."""
    OPTIMIZER = "optimizer"
    """The update went wrong by itself: stale second moment, lost state, weight decay, missing clipping."""
    NUMERICS = "numerics"
    """Overflow, underflow, NaN or infinity."""
    STRUCTURE = "structure"
    """The code is wrong: frozen or dead units, missing zero_grad, a leak, shuffled labels, a looping loader."""
    ROUTING = "routing"
    """Experts or memory slots collapsed."""
    GENERALIZATION = "generalization"
    """It fits the training data and nothing else."""


@dataclass(frozen=True, slots=True)
class Sign:
    """One thing that left its usual range."""

    step: int
    """First step of it."""
    stage: Stage
    signal: str
    """Canonical metric or layer statistic, or the id of the detector that found it."""
    event: str
    """What happened, as a clause with the numbers in it and no subject: "rose 30-fold to 0.09"."""
    where: str | None = None
    """Layer or parameter, None where the run as a whole is meant."""
    end_step: int | None = None
    score: float = 0.0
    """How far from usual, in robust standard deviations of this run; 0 where exact."""
    detector: str | None = None
    """Detector whose finding this is, None where the story looked for itself."""
    is_sentence: bool = False
    """Whether the event is a sentence with a subject of its own."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One possible cause with what speaks for it."""

    cause: Cause
    title: str
    """A sentence without a full stop: "the learning rate jumped 30-fold at step 180"."""
    weight: float
    """Share of the belief in this cause, 0 to 1; what the weights leave to 1 is what no rule thought of."""
    because: tuple[str, ...] = ()
    """Evidence, strongest first."""
    missing: tuple[str, ...] = ()
    """What would have to be recorded to be sure."""
    layer: str | None = None
    parameter: str | None = None
    fixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Story:
    """One incident, told in order."""

    signs: tuple[Sign, ...]
    """By step, then by stage."""
    onset: int
    """Step of the first sign."""
    end: int
    """Last step of the last sign."""
    loss_step: int | None = None
    """First step at which the loss shows it, None if it never does."""
    layer: str | None = None
    """First layer to show it."""
    parameter: str | None = None
    """First parameter to show it."""
    explanations: tuple[Explanation, ...] = ()
    """Most likely first; empty where the signs do not say."""
    suspects: tuple[int, ...] = field(default=())
    """Steps whose batches look bad by themselves, ascending."""
    missing: tuple[str, ...] = ()
    """Links of the chain that this run has no data for."""

    @property
    def lead(self) -> int | None:
        """Steps between the first sign and the loss, None where the loss shows nothing."""
        return None if self.loss_step is None else self.loss_step - self.onset

    @property
    def cause(self) -> Cause | None:
        """The most likely cause, None where the signs do not say."""
        return self.explanations[0].cause if self.explanations else None
