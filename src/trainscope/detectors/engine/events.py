"""The event that the engine finds, and what counts as one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Shape(StrEnum):
    """How an excursion ended."""

    SPIKE = "spike"
    UNRECOVERED = "unrecovered"
    SHIFT = "shift"
    DIVERGENCE = "divergence"


@dataclass(frozen=True, slots=True)
class Limits:
    """What counts as an excursion; the parameters of the four detectors together."""

    false_alarms: float = 0.001
    """Expected number of false jumps in a whole healthy run, whatever its length."""
    lonely: float = 8.0
    """A jump of ten times `min_rise` that is this many times as high as any other residual counts whatever the tail."""
    min_rise: float = 0.03
    """Smallest jump worth a finding, as a fraction of the level."""
    end_rise: float = 0.12
    """Smallest rise at the end of the run, as a fraction of the best level."""
    end_sigmas: float = 8.0
    """Smallest rise at the end, in standard errors of a block median."""
    shift_rise: float = 0.06
    """Smallest level shift, as a fraction of the level."""


@dataclass(frozen=True, slots=True)
class Excursion:
    """One rise of a loss. Indices are into the finite points of the series."""

    shape: Shape
    start: int
    peak: int
    end: int
    """Last point of the excursion, included."""
    level: float
    """Where the loss was before, in its own unit."""
    top: float
    """Its largest value during the excursion."""
    after: float
    """Where it was at the end, or after the excursion."""
    score: float
    """Height of the peak in scaled MADs, or of the rise in standard errors."""
