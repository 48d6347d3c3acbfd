"""The report document, schema version 1: the contract that every output and every other tool reads.

Fields are added (and the minor version raised), never renamed, removed or given another meaning within
a major version; whoever reads a document ignores what they do not know. ``schemas/`` holds the JSON
Schema made from these types by :mod:`trainscope.report.schema`.

History
    1.0  first version
    1.1  why a run broke: ``incidents`` of a run; text, stage, end, score, detector and incident of a story's event;
         action, reason, cause, checkpoint, rewind_to_step and proof of a replay
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import Field

from trainscope.report.part import Count as Count
from trainscope.report.part import Number as Number
from trainscope.report.part import Part as Part
from trainscope.report.part import Scalar as Scalar
from trainscope.report.replay_document import Replay as Replay
from trainscope.report.story_document import Incident as Incident
from trainscope.report.story_document import StoryEvent as StoryEvent

SCHEMA_VERSION = "1.1"

SeverityName = Literal["info", "warning", "error"]
FailOn = Literal["never", "info", "warning", "error"]


class Tool(Part):
    """Who wrote the document."""

    name: str
    version: str


class Verdict(Part):
    """What the gate says."""

    status: Literal["pass", "fail", "error"]
    """``error``: something could not be judged, and nothing that could be failed."""
    fail_on: FailOn
    gate: Literal["all", "new"]
    reason: str


class Counts(Part):
    """Findings by severity, over all runs."""

    error: Count = 0
    warning: Count = 0
    info: Count = 0


class Steps(Part):
    """Where a run begins and ends, on its own axis."""

    first: int | None
    last: int | None
    count: Count
    """How many distinct steps were logged."""


class Metric(Part):
    """One series in numbers."""

    name: str
    count: Count
    first: Number | None
    last: Number | None
    min: Number | None
    """Over finite values; null where there are none."""
    max: Number | None
    non_finite: Count = 0
    """How many values are NaN or infinite."""


class NoteEntry(Part):
    """What the reader dropped, merged, assumed or found odd."""

    kind: str
    message: str
    count: int = 1
    start_step: int | None = None
    end_step: int | None = None


class SkippedEntry(Part):
    """A detector that had nothing to judge, and why."""

    detector: str
    reason: str
    kind: Literal["data", "recording"] = "data"
    """What was missing: points or a metric, or what only a run recorded by trainscope has."""


class FindingEntry(Part):
    """One thing worth telling the person who started the run."""

    fingerprint: str
    detector: str
    severity: SeverityName
    title: str
    message: str
    metric: str | None = None
    layer: str | None = None
    start_step: int | None = None
    end_step: int | None = None
    peak_step: int | None = None
    evidence: dict[str, Number | str] = Field(default_factory=dict)
    fixes: list[str] = Field(default_factory=list)
    status: Literal["new", "known"] | None = None
    """Against the baseline; null without one."""
    occurrence: Annotated[int, Field(ge=1)] = 1
    """1 for the run's first finding with this fingerprint, 2 for the second, ..."""


class RunEntry(Part):
    """One run: what was read, and what is wrong with it."""

    id: str
    """Content hash of what was read: stable, safe as a folder name."""
    name: str
    source: str
    format: str
    x_axis: Literal["step", "epoch", "row"] = "step"
    """What "step" counts in this run."""
    steps: Steps
    metrics: list[Metric]
    config: dict[str, Scalar] = Field(default_factory=dict)
    notes: list[NoteEntry] = Field(default_factory=list)
    judged: list[str] = Field(default_factory=list)
    """Detectors that ran on this run, in report order; "no findings" means that these found none."""
    skipped: list[SkippedEntry] = Field(default_factory=list)
    findings: list[FindingEntry] = Field(default_factory=list)
    story: list[StoryEvent] = Field(default_factory=list)
    """What went wrong in which order, incident by incident."""
    incidents: list[Incident] = Field(default_factory=list)
    """Why; since 1.1."""
    replay: Replay | None = None


class ErrorEntry(Part):
    """A log that could not be judged."""

    kind: Literal["unreadable", "no_data", "not_judgeable"] = "unreadable"
    source: str
    line: int | None = None
    reason: str


class FixedEntry(Part):
    """A finding that the baseline has and these runs lack."""

    fingerprint: str
    detector: str
    title: str


class Comparison(Part):
    """One metric at one step against the baseline's runs."""

    metric: str
    step: int | None = None
    value: Number | None = None
    band: tuple[Number, Number] | None = None
    p_value: Number | None = None
    verdict: str


class Baseline(Part):
    """What these runs were compared with."""

    name: str
    runs: Count
    fixed: list[FixedEntry] = Field(default_factory=list)
    comparisons: list[Comparison] = Field(default_factory=list)


class Document(Part):
    """Everything we say about one or more runs."""

    schema_version: str = Field(pattern=r"^1\.\d+$")
    tool: Tool
    verdict: Verdict
    counts: Counts
    runs: list[RunEntry]
    errors: list[ErrorEntry] = Field(default_factory=list)
    baseline: Baseline | None = None

    def to_json(self) -> str:
        """Return the document as ASCII JSON, two spaces deep, the same bytes for the same content."""
        return json.dumps(self.model_dump(mode="json"), indent=2, allow_nan=False) + "\n"
