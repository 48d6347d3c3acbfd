"""What a detector is: a record of data and one pure function."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

from trainscope.core.finding import Finding
from trainscope.core.run import Run

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A detector could not judge this run. "Nothing to judge" is not "healthy"."""

    reason: str
    """What was missing, in words fit for a report: ``needs eval/loss``."""
    detector: str = ""


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
