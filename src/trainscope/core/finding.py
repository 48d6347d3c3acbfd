"""What detectors return and every output consumes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType


class Severity(IntEnum):
    """How much a finding should worry someone; ordered, so that gates can compare."""

    INFO = 1
    """Worth knowing; nobody needs to act."""
    WARNING = 2
    """Someone should look."""
    ERROR = 3
    """The run is broken or wasted."""

    @property
    def label(self) -> str:
        """The lower-case word used in documents and options."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing worth telling the person who started the run."""

    detector: str
    """Permanent snake_case id of the detector that says so."""
    severity: Severity
    title: str
    """A few words: "Loss spike"."""
    message: str
    """One or two sentences with the numbers in them."""
    metric: str | None = None
    """Canonical metric name, None when it is about the run as a whole."""
    layer: str | None = None
    start_step: int | None = None
    end_step: int | None = None
    peak_step: int | None = None
    """The worst step, between `start_step` and `end_step`."""
    evidence: Mapping[str, float | int | str] = field(default_factory=lambda: MappingProxyType({}))
    """The numbers behind the message, in the metric's unit unless the key says otherwise."""
    fixes: tuple[str, ...] = ()
    """What usually helps, most likely first."""

    @property
    def fingerprint(self) -> str:
        """Eight hex digits that stay the same when the same fault is found in another run.

        Steps and values are left out on purpose: a rerun moves them. Two findings of one detector
        on one metric and layer share a fingerprint; the report tells them apart by order.
        """
        what = "\0".join((self.detector, self.metric or "", self.layer or ""))
        return hashlib.sha256(what.encode("utf-8", "surrogatepass")).hexdigest()[:8]
