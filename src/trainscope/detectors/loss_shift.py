"""loss_shift: the loss steps up to a new level and goes on from there.

What it finds
    A lasting upward shift of the training loss that is neither a spike nor a divergence: a changed data
    mixture, a resume that lost state, a learning rate that was reset.
Algorithm
    One-sided CUSUM with slack 0.5 and threshold 24 (1 + phi) / (1 - phi), phi the lag-1 autocorrelation,
    on residuals clipped at 4 scaled MADs against the median of the 200 points before. The reference is
    level-only: an extrapolated trend alarms on noise where the loss is convex. The onset is the last
    zero of the sum; the shift must be `shift_rise` of the level and 8 standard errors of the two medians.
Parameters
    shift_rise: smallest shift, as a fraction of the level.
False positives
    A curriculum that makes the task harder on purpose.
Misses
    Shifts in the first 60 points, and shifts of less than `shift_rise`; in noise the 8 standard errors decide
    below about 3 %. On a loss that had hardly fallen, a shift that lasts to the end is a `divergence`.
    A run that was started over is left to `step_order`.
Reference
    E. S. Page, "Continuous inspection schemes", Biometrika 41, 1954. The inflation by autocorrelation and
    the clipping are ours; measured in docs/evidence.md.
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

    shift_rise: float = 0.06
    """As a fraction of the level; seeds alone differ by 1 to 2 %."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding for each upward level shift."""
    losses = training_losses(run, adversarial=False)
    if isinstance(losses, Skipped):
        return losses
    limits = Limits(shift_rise=params.shift_rise)
    findings = []
    for loss in map(judged, losses):
        events = [e for e in excursions(loss, limits) if e.shape is Shape.SHIFT]
        events = [e for e in events if not excused(run, int(loss.step[e.start]), e)]
        findings += [_finding(loss, e) for e in events[:MOST]]
    return findings


def _finding(loss: Series, event: Excursion) -> Finding:
    start, peak, end = (int(loss.step[i]) for i in (event.start, event.peak, event.end))
    stays = "to the end" if event.end == len(loss) - 1 else f"until step {end}"
    return Finding(
        detector="loss_shift",
        severity=Severity.WARNING,
        title="Loss shifted up",
        message=(
            f"{loss.name} rose from {number(event.level)} to {number(event.after)} around step {start} and stayed "
            f"up {stays}."
        ),
        metric=loss.name,
        start_step=start,
        end_step=end,
        peak_step=peak,
        evidence={"baseline": event.level, "after": event.after, "score": event.score},
        fixes=(
            "If the data changed here on purpose, this is expected: declare it by ignoring this detector.",
            "If the run was resumed here, check that optimizer, scheduler and sampler state were restored.",
            f"Else rewind to before step {start} and compare learning rate, data order and code.",
        ),
    )


DETECTOR = Detector("loss_shift", "Loss shifted up", ("train/loss",), Params(), detect)
