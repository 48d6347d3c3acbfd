"""What a probe measures, and how often."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure, and how often. The defaults are the recorder's."""

    trace_every: int = 1
    activation_every: int = 5
    activation_filter: tuple[str, ...] | None = None
    histogram_every: int = 50
    histogram_bins: int = 16
    moments_every: int = 5
    """First moments and RMS_t are measured at steps that sample activations, but not oftener than this: they lag
    behind the gradient by tens of steps, and cost as much as all activations of a small model."""
    second_every: int = 5
    """Second moments are measured every so many steps: they move by a thousandth at a step, and a state that is lost
    shows within six (`trainscope.detectors.optimizer_state`). With the activations, so that the other steps are
    without either."""
    device: str | None = None
    """Where statistics are computed; None is where each tensor is."""
