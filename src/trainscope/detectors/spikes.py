"""spikes: the loss jumps far above its recent level and comes back.

What it finds
    One point or a burst of points that stand out of the training loss and are gone within 60 points
    (or a tenth of the run).
Algorithm
    Each point is compared with the median of the 25 points before it, in scaled MADs of the 200 points
    before or after (the noisier side counts), and whitened by the lag-1 autocorrelation. The tail of
    the run's own residuals (Student-t and Weibull laws, averaged by their posterior weight) says how
    many such jumps a healthy run of this length would show; a point or a burst of 3 or 5 points counts
    when fewer than `false_alarms` are expected (ten times as many for one twice as high as any other of 500 or more
    that lie within 4 scaled MADs), or when a jump of 30 % of the level is
    eight times as high as anything else in the run, or one of 60 % six times where the noise is small
    (6 % of the level), or when two to five bursts of 60 % are each four times as high as all the rest. A rise
    of less than 30 % in which no point is a third of it above the five points before does not count: the loss
    wanders. Events found are taken out and the rest is judged again, so that one incident does not hide the
    next in its noise; a blow-up at the end goes first. In runs of 1,000 points or more the medians of 200
    blocks are judged too, for bumps of three blocks or more and 30 % of the level that the noise of single
    points hides. The first spike and the nine worst others are told. Four or more peaks of at most three
    points, 2.5 times the level and like height are one info finding (hard batches), and so is a smooth hump in
    the first 2 % of the run that stays below 1.5 times the first loss (a hot warm-up). In preference optimisation,
    single steps whose logged margin fell by half of the rise or more are one info finding: the loss is made of the
    margins of its own pairs, and the policy that ranks one pair the wrong way is none the worse at the next step.
Parameters
    false_alarms: expected false jumps in a whole healthy run, whatever its length.
    min_rise: smallest jump worth a finding, as a fraction of the level.
False positives
    A batch of another domain, any deliberate short change of the data, and the bumps after the restarts of a
    cyclic learning rate that is not logged. On healthy noise see
    docs/evidence.md.
Misses
    A jump within the first 8 points. A single hard batch in a run whose noise is heavy-tailed: it does
    not stand out of what that run shows anyway. In runs of under 200 points the tail is uncertain, so
    a jump must be some 12 scaled MADs high. Reinforcement learning is not judged.
Reference
    B. Iglewicz and D. Hoaglin, "How to Detect and Handle Outliers", ASQC 1993 (scaled MAD).
    A. Chowdhery et al., "PaLM", arXiv:2204.02311, section 5.1 (what spikes look like, and the remedy).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run, Series
from trainscope.detectors.base import MOST, Detector, Skipped, is_game, number, training_losses
from trainscope.detectors.engine.events import Excursion, Limits, Shape
from trainscope.detectors.engine.excursions import excursions, judged
from trainscope.detectors.engine.excuses import excused
from trainscope.detectors.engine.preferences import hard_pairs

RECURRING = 4
"""From this many peaks on, of at most three points and 2.5 times the level, they belong to the data."""
RECURRING_ARE = "peaks that recur and are gone at once are usually hard batches"
PAIRS_ARE = "the margin of the same step is as much lower: pairs that the policy ranks the wrong way"


@dataclass(frozen=True, slots=True)
class Params:
    """Thresholds without units, so that they fit any loss."""

    false_alarms: float = 0.001
    """Expected number of false jumps in a healthy run: 1 run in 1,000."""
    min_rise: float = 0.03
    """As a fraction of the level: less than 3 % is nothing to act on."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding for the first and for each of the worst spikes of each training loss."""
    losses = training_losses(run)
    if isinstance(losses, Skipped):
        return losses
    limits = Limits(false_alarms=params.false_alarms, min_rise=params.min_rise)
    if is_game(run):
        limits = replace(limits, end_rise=math.inf)
    findings = []
    for loss in map(judged, losses):
        events = [e for e in excursions(loss, limits) if e.shape is Shape.SPIKE]
        events = [e for e in events if not excused(run, int(loss.step[e.start]), e)]
        pairs = [e for e in events if hard_pairs(run, loss, e)]
        events = [e for e in events if e not in pairs]
        peaks = _recurring(events)
        for several, what in ((peaks, RECURRING_ARE), (pairs, PAIRS_ARE)):
            if several:
                findings.append(_hard_batches(loss, several, what))
        events = [e for e in events if e not in peaks]
        kept = sorted(events, key=lambda e: (e is not events[0], -e.score))[:MOST]
        findings += [_finding(loss, e, len(events)) for e in sorted(kept, key=lambda e: e.start)]
    return findings


def _recurring(events: list[Excursion]) -> list[Excursion]:
    """Return the short peaks, if there are so many that they are this run's normal, less the extreme ones."""
    single = [e for e in events if e.end - e.start <= 2 and e.top <= 2.5 * e.level]
    if len(single) < RECURRING:
        return []
    usual = sorted(e.score for e in single)[len(single) // 2]
    return [e for e in single if e.score < 4.0 * usual]


def _hard_batches(loss: Series, peaks: list[Excursion], what: str) -> Finding:
    top = max(peaks, key=lambda e: e.score)
    return Finding(
        detector="spikes",
        severity=Severity.INFO,
        title="Hard batches",
        message=(
            f"{loss.name} has {len(peaks)} short peak{'s' if len(peaks) > 1 else ''}, the highest {number(top.top)} at "
            f"step {int(loss.step[top.peak])}; {what}."
        ),
        metric=loss.name,
        start_step=int(loss.step[peaks[0].start]),
        end_step=int(loss.step[peaks[-1].end]),
        peak_step=int(loss.step[top.peak]),
        evidence={"peaks": len(peaks), "value": top.top, "score": top.score},
    )


def _is_warm_up_hump(loss: Series, event: Excursion) -> bool:
    """Tell whether a smooth hump lies in the first 2 % of the run and stays near the first loss."""
    early = event.peak < max(20, len(loss) // 50)
    return early and event.end - event.start >= 8 and event.top < 1.5 * float(loss.value[:5].max())


def _finding(loss: Series, event: Excursion, total: int) -> Finding:
    start, peak, end = (int(loss.step[i]) for i in (event.start, event.peak, event.end))
    if event.end + 1 == len(loss):
        lasted = "the log ends there"
    else:  # the end is the last step of the spike itself
        lasted = "came back at once" if end == start else f"was back by step {int(loss.step[event.end + 1])}"
    batches = f"batches of steps {start} to {peak}" if peak > start else f"batch of step {peak}"
    many = f" It is one of {total} spikes in this run." if total > 1 else ""
    return Finding(
        detector="spikes",
        severity=Severity.INFO if _is_warm_up_hump(loss, event) else Severity.WARNING,
        title="Loss spike",
        message=(
            f"{loss.name} jumped to {number(event.top)} at step {peak}, {number(event.score)} scaled MADs above "
            f"its recent median of {number(event.level)}, and {lasted}.{many}"
        ),
        metric=loss.name,
        start_step=start,
        end_step=end,
        peak_step=peak,
        evidence={"value": event.top, "baseline": event.level, "score": event.score, "spikes": total},
        fixes=(
            f"Look at the {batches}; rewind at least 100 steps and skip what is bad.",
            "Clip the gradient norm, or clip it lower.",
            "If spikes recur, lower the learning rate or Adam's beta2 (0.95).",
        ),
    )


DETECTOR = Detector("spikes", "Loss spike", ("train/loss",), Params(), detect)
