"""paired_loss: the loss is worse, or better than it should be, than the baseline's on the same batches.

What it finds
    A training loss whose last third lies above the baseline's by more than a margin (error), below it by more
    than that (warning: a better loss that nobody expected is as often a leak), that is not finite where the
    baseline's is, or that blows up and comes back.
Algorithm
    One look, at the end. Where the runs pair (same weights, batches, random numbers) the mean of the difference
    over the last third with its Newey-West standard error (lag 10): worse if the lower 99 % bound is above the
    margin, better if the upper one is below minus the margin. Where they do not pair, the same test with the
    errors of both means added and the margin widened to a seed band: with several baselines the 99 % prediction
    interval of Student's t over their means, with one a share of what the baseline's loss is or has fallen.
    Beside the mean a range check, because a blow-up widens its own error: the largest median of five
    neighbouring losses in the last two thirds against the baseline's.
Parameters
    relative, absolute: the margin, whichever is larger; the latter in proportion where the first loss is below 2.
    band: half the width of the seed band with a single baseline.
    blow_up: how much of what the baseline learned a run may lose again for a moment.
    learned: least relative fall of the baseline's loss for a comparison with power.
False positives
    An intended change of the objective, the data or the hyperparameters: accept it as the new baseline.
Misses
    What does not show in the loss (see the other comparisons), and faults smaller than the margin.
Reference
    Pairing measured on 26 injected faults: standard errors of 0.001-0.005 nat, against 0.014 between seeds.
    MLPerf's reference convergence points guard both sides in the same spirit.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import FloatArray
from trainscope.detectors.base import Skipped, number
from trainscope.diagnosis.base import Aligned, Compared, Comparer, Comparison, Pair
from trainscope.diagnosis.newey_west import Mean, mean_of
from trainscope.diagnosis.seed_band import LEAST as LEAST_BASELINES
from trainscope.diagnosis.seed_band import ends_of, half_width

LOSS = "train/loss"
LEAST = 12
"""Common steps below which nothing is judged: a last third of four."""

USUAL = 2.0
"""First loss, in nat, that an absolute margin is for; a squared error may start at 0.1."""


@dataclass(frozen=True, slots=True)
class Params:
    """How much worse is worse."""

    relative: float = 0.005
    """Of the baseline's loss. Kernel noise moves it by under 0.1 %; most bugs by 1 % and more."""
    absolute: float = 0.01
    """In the loss's own unit; nats for a cross-entropy."""
    band: float = 0.05
    """Of the baseline's loss or of its fall, whichever is larger; the rtol of Megatron-LM's golden values."""
    blow_up: float = 0.25
    """Of the baseline's fall."""
    learned: float = 0.02
    """Of the baseline's first loss."""


def compare(pair: Pair, params: Params) -> Compared | Skipped:
    """Compare the training losses."""
    both = pair.both(LOSS)
    if both is None:
        return Skipped(f"needs {LOSS} of both runs")
    if len(both) < LEAST:
        return Skipped(f"needs {LEAST} common steps of {LOSS}, has {len(both)}")
    broken = _not_finite(both)
    if broken is not None:
        return Compared((broken,), (Comparison(LOSS, "not finite", step=broken.start_step),))
    finite = both.finite()
    if len(finite) < LEAST:
        return Skipped(f"needs {LEAST} common steps of {LOSS} that are finite, has {len(finite)}")
    tail = finite.tail()
    level = float(np.mean(tail.base))
    fall = float(np.median(finite.base[:3])) - level
    margin = max(params.relative * abs(level), params.absolute * min(1.0, abs(level + fall) / USUAL))
    if pair.pairing.exact:
        difference, limit = mean_of(tail.run - tail.base), margin
    else:
        difference = _unpaired(pair, tail)
        limit = max(margin, half_width(pair, LOSS, max(abs(level), abs(fall)) * params.band))
    found = [_judged(tail, difference, limit, exact=pair.pairing.exact), _blow_up(finite, fall, margin, params)]
    findings = tuple(f for f in found if f is not None)
    verdict = _verdict(difference, limit)
    line = Comparison(
        LOSS,
        verdict,
        int(tail.step[-1]),
        level + difference.value,
        (level - limit, level + limit),
        _p_value(difference),
    )
    return Compared(findings[:1], (line, *_power(finite, fall, params)))


def _not_finite(both: Aligned) -> Finding | None:
    bad = ~np.isfinite(both.run) & np.isfinite(both.base)
    if not bad.any():
        return None
    at, last = int(both.step[np.argmax(bad)]), int(both.step[np.flatnonzero(bad)[-1]])
    value = float(both.run[np.argmax(bad)])
    return Finding(
        detector="paired_loss",
        severity=Severity.ERROR,
        title="Loss no longer finite",
        message=f"{LOSS} is {number(value)} at step {at}, where the baseline's is finite.",
        metric=LOSS,
        start_step=at,
        end_step=last,
        peak_step=at,
        evidence={"steps": int(bad.sum())},
        fixes=("Look at what the change divides by, takes the logarithm of, or averages over an empty set.",),
    )


def _unpaired(pair: Pair, tail: Aligned) -> Mean:
    """Return the difference of the means: to that of all baselines where their spread makes the band."""
    mine, theirs = mean_of(tail.run), mean_of(tail.base)
    ends = ends_of(pair, LOSS)
    if len(ends) >= LEAST_BASELINES:
        return Mean(mine.value - float(np.mean(ends)), 0.0, mine.count)
    return Mean(mine.value - theirs.value, sqrt(mine.error**2 + theirs.error**2), mine.count)


def _verdict(difference: Mean, limit: float) -> str:
    if difference.lower() > limit:
        return "worse"
    if difference.upper() < -limit:
        return "better"
    if abs(difference.value) > limit:  # a few steps made the mean: it may as well be none
        return "beyond the margin, within its own error"
    return "same" if difference.value == 0.0 and difference.error == 0.0 else "within margin"


def _p_value(difference: Mean) -> float | None:
    from statistics import NormalDist

    if difference.error == 0.0:
        return 1.0 if difference.value == 0.0 else None
    return 2.0 * NormalDist().cdf(-abs(difference.value) / difference.error)


def _judged(tail: Aligned, difference: Mean, limit: float, *, exact: bool) -> Finding | None:
    verdict = _verdict(difference, limit)
    if verdict not in ("worse", "better"):
        return None
    level, worse = float(np.mean(tail.base)), verdict == "worse"
    what = "on the same batches" if exact else "beyond what another seed explains"
    caution = "" if worse else ": a gain nobody expected is as often a leak"
    return Finding(
        detector="paired_loss",
        severity=Severity.ERROR if worse else Severity.WARNING,
        title="Loss worse than the baseline" if worse else "Loss too good",
        message=(
            f"{LOSS} over the last third is {number(level + difference.value)}, the baseline's {number(level)} "
            f"{what}: {difference.value:+.4g} with a standard error of {number(difference.error)}, "
            f"margin {number(limit)}{caution}."
        ),
        metric=LOSS,
        start_step=int(tail.step[0]),
        end_step=int(tail.step[-1]),
        peak_step=int(tail.step[np.argmax(np.abs(tail.run - tail.base))]),
        evidence={
            "difference": difference.value,
            "standard_error": difference.error,
            "margin": limit,
            "baseline": level,
        },
        fixes=(
            ("If the change is meant to cost this much, save a new baseline.",)
            if worse
            else (
                "Check the causal mask, the label shift, dropout, and that evaluation data stay out of training.",
                "If the gain is meant, save a new baseline.",
            )
        ),
    )


def _blow_up(both: Aligned, fall: float, margin: float, params: Params) -> Finding | None:
    """Return a finding where the loss leaves the baseline's range for at least three steps out of five."""
    smooth_run, smooth_base = _medians(both.run), _medians(both.base)
    start = len(both) // 3
    excess = smooth_run[start:] - float(np.max(smooth_base[start:]))
    limit = max(params.blow_up * abs(fall), 10 * margin)
    if float(np.max(excess)) <= limit:
        return None
    at = int(both.step[start + int(np.argmax(excess))])
    top = float(np.max(smooth_run[start:]))
    return Finding(
        detector="paired_loss",
        severity=Severity.ERROR,
        title="Loss leaves the baseline's range",
        message=(
            f"{LOSS} reaches {number(top)} around step {at}; the baseline's stays below "
            f"{number(float(np.max(smooth_base[start:])))} from step {int(both.step[start])} on."
        ),
        metric=LOSS,
        start_step=int(both.step[start + int(np.argmax(excess > limit))]),
        end_step=int(both.step[-1]),
        peak_step=at,
        evidence={"excess": float(np.max(excess)), "limit": limit},
        fixes=("Look at the learning rate, the clipping and the loss scale of the change.",),
    )


def _medians(values: FloatArray) -> FloatArray:
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(values, 2, mode="edge"), 5)
    medians: FloatArray = np.median(windows, axis=1)
    return medians


def _power(both: Aligned, fall: float, params: Params) -> tuple[Comparison, ...]:
    """Say so where the baseline hardly learned: then little can be seen."""
    first = float(np.median(both.base[:3]))
    if fall >= params.learned * abs(first):
        return ()
    return (
        Comparison(
            "power",
            f"the baseline's {LOSS} hardly fell ({number(first)} to {number(first - fall)}): this comparison sees "
            "little; give it more steps",
        ),
    )


COMPARER = Comparer("paired_loss", "Loss worse than the baseline", (LOSS,), Params(), compare)
