"""divergence: the loss turns round, rises, and does not come back before the end.

What it finds
    A slow rise, a blow-up in the last points, a loss that jumps up and stays there, and one that stands above where
    it began for half of the run or more, even if it comes down again in the end.
Algorithm
    The run is cut into about 100 blocks; the median of the last 5 % of them is compared with the best
    block so far. It counts when the rise is 8 standard errors of a block median and either `end_rise` of
    the best level, or half of everything the run had gained. A run that ends inside a jump (see `spikes`)
    of at least three points, or of three times the level, counts too. Standing above the start means blocks in a
    row that are `start_rise` and 8 standard errors above the median of the first three points in a run of 100 points
    or more, and three times that median in one of 20 or more; where the median itself is more than ten times the very
    first value, which is the model before any update, ten times that value counts. The losses of an adversarial run,
    and the sum of what several optimizers follow, must double, and not before 30 % of the run; the loss of one player
    that rises as the other's falls is the game, and left to gan_imbalance. A run that was started over is left to
    step_order.
Parameters
    end_rise: smallest rise at the end, as a fraction of the best level.
    start_rise: smallest rise above the first values, as a fraction of them.
    error_rise: from this rise on it is an error, not a warning.
False positives
    A curriculum or an annealed extra term (KL weight in a VAE) that raises the loss on purpose.
Misses
    A divergence that is cut off before it has risen by `end_rise`. Reinforcement learning is not judged.
Reference
    Best-so-far against now is the idea of Prechelt's generalization loss ("Early Stopping - but when?",
    1998), used here on the training loss with a standard error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import Kind, kind
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, by_kind, is_game, number, training_losses
from trainscope.detectors.engine.events import Excursion, Limits, Shape
from trainscope.detectors.engine.excursions import excursions, judged
from trainscope.detectors.engine.restarts import near_restart
from trainscope.detectors.engine.shifts import above_start

_FALL = 0.1
"""By what part the other player's loss must have fallen: less is noise."""


@dataclass(frozen=True, slots=True)
class Params:
    """Thresholds without units, so that they fit any loss."""

    end_rise: float = 0.12
    """As a fraction of the best level; healthy public runs stay under 0.05."""
    start_rise: float = 0.03
    """As a fraction of the first values: no training should make a loss worse than it was untrained."""
    error_rise: float = 0.5
    """As a fraction of the best level."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding for each training loss that ends far above its best."""
    losses = training_losses(run)
    if isinstance(losses, Skipped):
        return losses
    limits = Limits(end_rise=params.end_rise)
    findings = []
    for loss in map(judged, losses):
        events = excursions(loss, limits)
        for event in events:
            rise = (event.after - event.level) / max(abs(event.level), 1e-300)
            if event.shape is Shape.DIVERGENCE and not _excused(run, loss, event, rise):
                findings.append(_finding(loss, event, rise, params))
        if loss.name == "train/loss" and all(event.shape is Shape.SPIKE for event in events):
            worse = above_start(loss.value, params.start_rise, limits.end_sigmas)
            findings += [_worse_than_untrained(loss, worse)] if worse is not None else []
    return findings


def _excused(run: Run, loss: Series, event: Excursion, rise: float) -> bool:
    if is_game(run):
        return rise < 1.0 or event.start < 0.3 * len(loss) or _is_lost_to_the_other(run, loss, event)
    return near_restart(run, int(loss.step[event.start]))


def _is_lost_to_the_other(run: Run, loss: Series, event: Excursion) -> bool:
    """Tell whether this is the loss of one player of a game, and that of another falls meanwhile."""
    if kind(loss.name) is not Kind.ADVERSARIAL_LOSS:
        return False
    since = int(loss.step[event.start])
    for other in by_kind(run, Kind.ADVERSARIAL_LOSS):
        finite = other.finite()
        before, after = finite.value[finite.step < since], finite.value[finite.step >= since]
        if other.name != loss.name and len(before) and len(after):
            then, now = np.median(before[-max(1, len(before) // 2) :]), np.median(after[-max(1, len(after) // 2) :])
            if now <= then - _FALL * abs(then):
                return True
    return False


def _finding(loss: Series, event: Excursion, rise: float, params: Params) -> Finding:
    start, peak, end = (int(loss.step[i]) for i in (event.start, event.peak, event.end))
    percent = f" ({rise:+.0%})" if abs(rise) < 1e4 else ""
    return Finding(
        detector="divergence",
        severity=Severity.ERROR if rise >= params.error_rise else Severity.WARNING,
        title="Loss diverges",
        message=(
            f"{loss.name} was down to a level of {number(event.level)}, rises from step {start} on, and its last "
            f"points, up to step {end}, are at a level of {number(event.after)}{percent}."
        ),
        metric=loss.name,
        start_step=start,
        end_step=end,
        peak_step=peak,
        evidence={"best": event.level, "last": event.after, "rise": rise, "score": event.score},
        fixes=(
            f"Resume from a checkpoint before step {start} with a lower learning rate.",
            "Check what changed there: learning rate, data, precision.",
            "Clip the gradient norm; use a longer warm-up; keep norms and softmax in fp32.",
        ),
    )


def _worse_than_untrained(loss: Series, event: Excursion) -> Finding:
    start, peak, end = (int(loss.step[i]) for i in (event.start, event.peak, event.end))
    return Finding(
        detector="divergence",
        severity=Severity.WARNING,
        title="Loss rises above its start",
        message=(
            f"{loss.name} began at {number(event.level)} and stood above it from step {start} to {end}, "
            f"at {number(event.after)}: training made it worse."
        ),
        metric=loss.name,
        start_step=start,
        end_step=end,
        peak_step=peak,
        evidence={"first": event.level, "stood": event.after, "score": event.score},
        fixes=(
            "Lower the learning rate or warm it up for longer: the first updates already went too far.",
            "Check the sign of the loss, the labels, and that the optimizer holds the right parameters.",
        ),
    )


DETECTOR = Detector("divergence", "Loss diverges", ("train/loss",), Params(), detect)
