"""The case file, schema version 1: one run told in full, many runs side by side, or the weights of two steps.

Fields are added (and the minor version raised), never renamed, removed or given another meaning within a major
version; whoever reads a case file ignores what they do not know. :mod:`trainscope.report.schema` publishes its types.

History: 1.0 first version, 1.1 ranks.
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import Field

from trainscope.report.document import Counts, ErrorEntry, RunEntry, Tool
from trainscope.report.part import Count, Number, Part, Scalar, Share
from trainscope.report.story_document import StageName

CASE_VERSION = "1.1"

Status = Literal["broken", "stable", "unjudged"]


class LayerChangeEntry(Part):
    """One parameter at two steps; divergences in nats."""

    layer: str
    first: int | None = None
    """Step of the earlier histogram."""
    last: int | None = None
    divergence: Number | None = None
    """Sum of both directions; the rows are ranked by it."""
    forward: Number | None = None
    """Of the later histogram from the earlier."""
    backward: Number | None = None
    beyond: Share | None = None
    """Share of the later weights in the two outer bins, which also count what lies beyond them."""
    weight_norm: tuple[Number, Number] | None = None
    grad_norm: tuple[Number, Number] | None = None
    grad_ratio: Number | None = None
    reason: str | None = None


class WeightChangeEntry(Part):
    """All parameters between two steps, largest divergence first."""

    first: int
    last: int
    unit: Literal["nat"] = "nat"
    layers: list[LayerChangeEntry] = Field(default_factory=list)
    reason: str | None = None
    """Why no parameter has a number."""


class ReplayEntry(Part):
    """How to train again, as ``trainscope replay`` plans it."""

    action: Literal["skip", "fix", "rerun"]
    reason: str
    checkpoint: str | None = None
    """Where to begin again; null is the start of training."""
    rewind_to_step: int | None = None
    skip_batches: list[int] = Field(default_factory=list)
    """Positions of the batches to leave out."""
    notes: list[str] = Field(default_factory=list)
    commands: list[str] = Field(default_factory=list)
    """What to type next."""


class CaseEntry(Part):
    """One run in full."""

    status: Status
    summary: str
    """The verdict in a sentence."""
    run: RunEntry
    ranks: str | None = None
    """Of several ranks: which one this is, and what the others show; since 1.1."""
    counts: Counts
    main: Annotated[int, Field(ge=1)] | None = None
    """Number of the run's incident that matters most, from 1; null where there is none."""
    weight_change: WeightChangeEntry | None = None
    """From before the onset of the main incident to after it; null where there is none."""
    replay: ReplayEntry | None = None
    unknown: list[str] = Field(default_factory=list)
    """What could not be judged, and what would have to be recorded."""


class MemberEntry(Part):
    """One run among many."""

    id: str
    name: str
    source: str
    format: str
    status: Status
    ranks: Annotated[int, Field(ge=1)] = 1
    """Recorded ranks of the launch that this one stands for; since 1.1."""
    cluster: str | None = None
    """Id of its cluster."""
    last_step: int | None = None
    onset: int | None = None
    loss_step: int | None = None
    lead: int | None = None
    cause: str | None = None
    counts: Counts
    signals: list[str] = Field(default_factory=list)
    """What it showed, in order."""
    last_loss: Number | None = None
    settings: Count = 0
    """Settings that its configuration has."""


class LeadEntry(Part):
    """Steps from the first sign to the loss."""

    median: Number
    least: int
    most: int
    runs: Count


class TraitEntry(Part):
    """One setting that the members have more often than the stable runs."""

    key: str
    relation: Literal["=", "≥", "≤"]
    value: Scalar
    members: Count
    stable: Count
    p_value: float
    corrected: float
    also: list[str] = Field(default_factory=list)


class TraitsEntry(Part):
    """What sets the members apart, out of how much."""

    members: Count
    stable: Count
    tried: Count
    """Distinct splits that were judged; p-values are corrected for them."""
    traits: list[TraitEntry] = Field(default_factory=list)
    reason: str | None = None


class LeftOut(Part):
    """A run that has no part in something, and why."""

    name: str
    reason: str


class BandEntry(Part):
    """Loss over its own baseline, aligned at the onset; columns of equal length."""

    runs: Count
    offset: list[int] = Field(default_factory=list)
    median: list[Number | None] = Field(default_factory=list)
    low: list[Number | None] = Field(default_factory=list)
    """Lower quartile; null where fewer than three runs log."""
    high: list[Number | None] = Field(default_factory=list)
    alive: list[Count] = Field(default_factory=list)
    counterexample: list[Number | None] = Field(default_factory=list)
    """The nearest stable run, as if it had broken there."""
    left_out: list[LeftOut] = Field(default_factory=list)


class DifferenceEntry(Part):
    """One setting that a broken run and its counterexample do not share."""

    key: str
    member: Scalar
    stable: Scalar
    members_alike: tuple[Count, Count]
    """Members on the member's side of it, of those that say."""
    stable_alike: tuple[Count, Count]
    p_value: float


class CounterexampleEntry(Part):
    """The stable run that is most like the broken ones."""

    member: str | None = None
    """Id of the broken run of the pair."""
    stable: str | None = None
    distance: Share | None = None
    differences: list[DifferenceEntry] = Field(default_factory=list)
    more: Count = 0
    reason: str | None = None


class ClusterEntry(Part):
    """Runs that broke in the same way."""

    id: str
    title: str
    members: list[str]
    signals: list[str] = Field(default_factory=list)
    """Of at least half of the members, in their usual order."""
    shares: dict[str, Share] = Field(default_factory=dict)
    """Signal to the share of members that showed it."""
    found: dict[str, Count] = Field(default_factory=dict)
    """Detector to how many members it found something in."""
    stages: list[StageName] = Field(default_factory=list)
    places: list[str] = Field(default_factory=list)
    causes: dict[str, Count] = Field(default_factory=dict)
    lead: LeadEntry | None = None
    traits: TraitsEntry
    fate: BandEntry
    counterexample: CounterexampleEntry


class Survey(Part):
    """Many runs side by side."""

    summary: str
    broken: Count
    stable: Count
    unjudged: Count
    clusters: list[ClusterEntry] = Field(default_factory=list)
    members: list[MemberEntry] = Field(default_factory=list)
    """Every run, none lost: broken ones by cluster, then stable, then those not judged."""


class DiffEntry(Part):
    """The weights of one run at two steps."""

    id: str
    name: str
    source: str
    change: WeightChangeEntry


class CaseFile(Part):
    """One report; exactly one of `case`, `survey` and `diff` is there."""

    schema_version: str = Field(pattern=r"^1\.\d+$")
    tool: Tool
    kind: Literal["run", "runs", "diff"]
    case: CaseEntry | None = None
    survey: Survey | None = None
    diff: DiffEntry | None = None
    errors: list[ErrorEntry] = Field(default_factory=list)
    """Logs that could not be judged, by name."""

    def to_json(self) -> str:
        """Return the case file as ASCII JSON, two spaces deep, the same bytes for the same content."""
        return json.dumps(self.model_dump(mode="json"), indent=2, allow_nan=False) + "\n"
