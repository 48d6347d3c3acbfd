"""The parts of the report document that say why a run broke."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from trainscope.report.part import Number, Part, Share

StageName = Literal["data", "schedule", "update", "gradient", "activation", "loss", "eval"]
CauseName = Literal["data", "schedule", "optimizer", "numerics", "structure", "routing", "generalization"]


class StoryEvent(Part):
    """One sign of trouble, and how long before the loss showed it."""

    step: int
    signal: str
    where: str | None = None
    """Layer or parameter."""
    event: str
    lead_steps: int | None = None
    """Steps from here to the first sign in the loss; null where the loss shows none, or none after this."""
    text: str | None = None
    """The whole as a sentence without a full stop. Since 1.1, as are all fields below."""
    stage: StageName | None = None
    end_step: int | None = None
    score: Number = 0
    """Robust standard deviations of this run; 0 where exact."""
    detector: str | None = None
    """Whose finding it is; null where the story looked for itself."""
    incident: Annotated[int, Field(ge=1)] = 1
    """Which of the run's incidents it belongs to."""


class ExplanationEntry(Part):
    """One possible cause with what speaks for it."""

    cause: CauseName
    title: str
    weight: Share
    """Of the belief; what the weights leave to 1 is what no rule thought of."""
    because: list[str] = Field(default_factory=list)
    missing: list[str] = Field(default_factory=list)
    """What would have to be recorded to be sure."""
    layer: str | None = None
    parameter: str | None = None
    fixes: list[str] = Field(default_factory=list)


class Incident(Part):
    """One thing that went wrong, and why; its signs are the story's events with its number."""

    onset: int
    end: int
    loss_step: int | None = None
    lead_steps: int | None = None
    layer: str | None = None
    """First to show it."""
    parameter: str | None = None
    cause: CauseName | None = None
    """The most likely one; null where the signs do not say."""
    explanations: list[ExplanationEntry] = Field(default_factory=list)
    """Most likely first."""
    suspects: list[int] = Field(default_factory=list)
    """Steps whose batches look bad by themselves."""
    missing: list[str] = Field(default_factory=list)
    """Links of the chain that the run has no data for."""
