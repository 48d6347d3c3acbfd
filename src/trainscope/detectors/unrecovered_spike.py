"""unrecovered_spike: the loss jumps, falls back part of the way, and stays above where it was.

What it finds
    A spike after which the training loss does not return to its old level within 60 points (or a tenth
    of the run).
Algorithm
    The jump is found as in `spikes`; it counts as unrecovered when no five points in a row come back to
    within 3 scaled MADs (or 15 % of the jump) of the level before, or when it stays 8 % above it for the
    next 40 points (5 % of the run). It is an error if it lasts to the end, else a warning.
Parameters
    false_alarms, min_rise: as in `spikes`.
False positives
    A change of the data mixture that makes the task harder for good and begins with a jump.
Misses
    A spike in the last points of a run: there is nothing after it to judge.
Reference
    The same event, spike without recovery, is described in marin-community/marin#1390.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run, Series
from trainscope.detectors.base import MOST, Detector, Skipped, number, training_losses
from trainscope.detectors.engine.events import Excursion, Limits, Shape
from trainscope.detectors.engine.excursions import excursions, judged
from trainscope.detectors.engine.excuses import excused


@dataclass(frozen=True, slots=True)
class Params:
    """Thresholds without units, so that they fit any loss."""

    false_alarms: float = 0.001
    """Expected number of false jumps in a healthy run."""
    min_rise: float = 0.03
    """As a fraction of the level."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding for each spike that never came back."""
    losses = training_losses(run)
    if isinstance(losses, Skipped):
        return losses
    limits = Limits(false_alarms=params.false_alarms, min_rise=params.min_rise)
    findings = []
    for loss in map(judged, losses):
        events = [e for e in excursions(loss, limits) if e.shape is Shape.UNRECOVERED]
        events = [e for e in events if not excused(run, int(loss.step[e.start]), e)]
        findings += [_finding(loss, e) for e in events[:MOST]]
    return findings


def _finding(loss: Series, event: Excursion) -> Finding:
    start, peak, end = (int(loss.step[i]) for i in (event.start, event.peak, event.end))
    return Finding(
        detector="unrecovered_spike",
        severity=Severity.ERROR if event.end == len(loss) - 1 else Severity.WARNING,
        title="Spike without recovery",
        message=(
            f"{loss.name} jumped from {number(event.level)} to {number(event.top)} at step {peak} and was still "
            f"at a level of {number(event.after)} by step {end}."
        ),
        metric=loss.name,
        start_step=start,
        end_step=end,
        peak_step=peak,
        evidence={"value": event.top, "baseline": event.level, "after": event.after, "score": event.score},
        fixes=(
            f"Resume from the last checkpoint before step {start}; skip the batches that led there.",
            "Lower the learning rate for the resumed part, and clip the gradient norm.",
        ),
    )


DETECTOR = Detector("unrecovered_spike", "Spike without recovery", ("train/loss",), Params(), detect)
