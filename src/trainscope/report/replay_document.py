"""The parts of the report document about training again."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trainscope.report.part import Count, Number, Part


class ProofRow(Part):
    """One number of the original run and of its replay."""

    metric: str
    what: str
    original: Number | None = None
    replay: Number | None = None


class ReplayProof(Part):
    """What a replay without the skipped batches shows."""

    verdict: Literal["verified", "still there", "moved", "not proven"]
    reason: str
    comparisons: list[ProofRow] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)


class Replay(Part):
    """How to train again without what hurt."""

    skip_batches: list[int] = Field(default_factory=list)
    path: str | None = None
    """The ``replay_config.json`` beside this document, with all of the plan."""
    action: Literal["skip", "fix", "rerun"] | None = None
    """Skip the batches, fix the cause and skip nothing, or run the same steps again; since 1.1."""
    reason: str | None = None
    cause: str | None = None
    checkpoint: str | None = None
    rewind_to_step: Count | None = None
    proof: ReplayProof | None = None
    """Only in the document of a replayed run."""
