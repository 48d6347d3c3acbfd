"""bad_batch: a batch does not look like the others of its run, seen before the model has seen it.

What it finds
    Garbage, repetition, padding, NaN and wrongly scaled numbers in the batch itself, and names the batches: what a
    replay can skip.
Algorithm
    Each statistic of a batch (entropy of its tokens, share of tokens that repeat with a period of up to 13, share of
    padding, mean and standard deviation of numbers) is compared with the run's own batches of like size, on both
    sides, in robust standard deviations: the larger of the scaled MAD and a 95 % quantile over 1.96, and never below a
    floor. Far is not enough where the statistic has a heavy tail: the tail of the run's own batches (Student-t and
    Weibull laws, averaged by their posterior weight; of shares, their log odds) says how many such groups of
    neighbouring batches a healthy run of this length would have. NaN and infinity in a batch count at once.
    Neighbouring bad steps are one finding.
Parameters
    sigma: robust standard deviations from the median.
    false_alarms: expected number of groups as odd in a healthy run, whatever its length.
    most: largest share of the batches that may be bad; more of them are another kind of data.
    least: batches needed to know what is usual.
False positives
    A rare kind of document (a table, a log, source code) that fills a whole batch; the first batches of another data
    set, if it makes up less than `most` of the run. Of 100 simulated runs of 300 batches, 0 with Gaussian,
    exponential and Laplace tails, 5 and 6 with those of Student's t with 4 and 3 degrees of freedom.
Misses
    A single bad batch of a statistic with a heavy tail (15 scaled MADs are found in 100 of 100 Gaussian runs, in 7 of
    100 Laplace ones; three neighbouring ones in 100 and 97). Text that is wrong in meaning only (shuffled words, wrong
    labels); repetition where most of a batch is padding, which repeats too; a bad row in a batch of many; batches of
    which a sample shows nothing; data that is bad from the first step on.
Reference
    A. Chowdhery et al., "PaLM", arXiv:2204.02311, section 5.1 (spikes come from batches together with a state).
    Team OLMo, "2 OLMo 2 Furious", arXiv:2501.00656, section 3.1 (repeated n-grams of up to 13 tokens).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.finding import Finding, Severity
from trainscope.core.positions import ranges
from trainscope.core.robust import mad_sigma
from trainscope.core.run import FloatArray, Run, Series
from trainscope.core.tails import fit_tail
from trainscope.detectors.base import MOST, Detector, Lack, Skipped, number

FLOORS: Mapping[str, float] = {
    "batch/token_entropy": 0.025,
    "batch/repetition": 0.025,
    "batch/padding": 0.025,
    "batch/mean": 0.0,
    "batch/std": 0.0,
}
"""Statistic to the least standard deviation that is taken for its noise: batches that are all alike have none, and
less than 0.2 nat or a fifth of a batch is nothing to act on."""
RELATIVE_FLOOR = 0.02
"""The same for means and deviations of numbers, as a share of the usual deviation of a batch."""
SHARES = frozenset({"batch/repetition", "batch/padding"})
NOTHING = 0.02
"""Share that is as good as none."""
FAR = 1e6
"""Scaled MADs of a batch that differs where all others are alike."""
NON_FINITE = "batch/non_finite"
SIZE = "batch/size"
LIKE = 0.1
"""Sizes within 10 % of the median are like: the entropy of fewer tokens is lower whatever they are."""
NEIGHBOURS = 8
"""Steps between two bad batches that are still one incident."""
QUANTILE, ITS_SIGMAS = 0.95, 1.96
_WORDS = {
    "batch/token_entropy": ("a token entropy of {} nat", "garbage", "repetition or padding"),
    "batch/repetition": ("{} of its tokens repeated", "repetition", "unusual variety"),
    "batch/padding": ("{} of its tokens padding", "padding", "no padding"),
    "batch/mean": ("a mean of {}", "a wrong scale", "a wrong scale"),
    "batch/std": ("a standard deviation of {}", "a wrong scale", "a wrong scale"),
    NON_FINITE: ("{} of its numbers NaN or infinite", "broken samples", "broken samples"),
}


@dataclass(frozen=True, slots=True)
class Params:
    """Thresholds without units, so that they fit any data."""

    sigma: float = 8.0
    """Robust standard deviations; what PaLM-like postmortems call garbage is at 15 and more in small models."""
    false_alarms: float = 0.02
    """Of one statistic; in a few hundred batches the tail is uncertain, and no batch is much rarer than that."""
    most: float = 0.05
    """Of all batches: a mixture of kinds of data has more of each."""
    least: int = 20
    """Batches; of fewer, the spread is not known."""


@dataclass(frozen=True, slots=True)
class Odd:
    """One batch that stands out, by the statistic that shows it most."""

    step: int
    metric: str
    value: float
    usual: float
    score: float


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding for each group of neighbouring batches that stand out."""
    known = [run.get(name) for name in (*FLOORS, NON_FINITE)]
    present = [series for series in known if series is not None]
    if not present:
        return Skipped(
            "needs batch statistics; trainscope smoke, trainscope ci and the recorder record them", kind=Lack.RECORDING
        )
    if max(len(series) for series in present) < params.least:
        return Skipped(f"needs {params.least} steps with batch statistics")
    worst: dict[int, Odd] = {}
    for series in present:
        for odd in odd_ones(run, series, params):
            if odd.step not in worst or odd.score > worst[odd.step].score:
                worst[odd.step] = odd
    groups = _groups([worst[step] for step in sorted(worst)])
    chosen = sorted(groups, key=lambda group: -max(odd.score for odd in group))[:MOST]
    return [_finding(group, len(groups)) for group in sorted(chosen, key=lambda group: group[0].step)]


def odd_ones(run: Run, series: Series, params: Params) -> list[Odd]:
    """Return the batches that stand out in one statistic."""
    if series.name == NON_FINITE:
        bad = np.flatnonzero(series.value > 0)
        return [Odd(int(series.step[i]), series.name, float(series.value[i]), 0.0, np.inf) for i in bad]
    keep = np.isfinite(series.value) & _like(run, series)
    step, value = series.step[keep], series.value[keep]
    if len(value) < params.least:
        return []
    usual = float(np.median(value))
    score = scores(value, _floor(run, series.name))
    found: list[Odd] = []
    for side in (1.0, -1.0):
        bad = np.flatnonzero(side * score >= params.sigma)
        if not len(bad) or len(bad) > max(1.0, params.most * len(value)):
            continue
        odds = [Odd(int(step[i]), series.name, float(value[i]), usual, float(side * score[i])) for i in bad]
        rarity = dict(zip(step[bad].tolist(), _log_rarity(side * even(series.name, value), bad), strict=True))
        beyond = math.log(params.false_alarms / max(1, int((side * score > 0).sum())))
        for group in _groups(odds):
            # Two chance outliers are neighbours in any of so many ways.
            chance = sum(rarity[one.step] for one in group) + (len(group) - 1) * math.log(NEIGHBOURS)
            found += group if chance <= beyond else []
    return found


def even(name: str, value: FloatArray) -> FloatArray:
    """Return values on a scale on which their tail is lighter: shares on that of their log odds."""
    if name not in SHARES:
        return value
    return np.asarray(np.log((value + NOTHING) / (1.0 - value + NOTHING)))


def _log_rarity(value: FloatArray, bad: NDArray[np.intp]) -> list[float]:
    """Return the log of the probability that a batch of this run lies as far above the others as each of `bad`."""
    away = value - np.median(value)
    spread = mad_sigma(away)
    scaled = away / spread if spread > 0 else np.copysign(FAR, away) * (away != 0)
    return [float(p) for p in fit_tail(scaled).log_probability(np.maximum(scaled[bad], 1e-9))]


def scores(value: FloatArray, floor: float) -> FloatArray:
    """Return how far each value is from the median, in robust standard deviations.

    Parameters
    ----------
    value : (n,) float64 array
        Finite values.
    floor : float
        Least standard deviation, in the unit of the values.
    """
    away = value - np.median(value)
    sigma = max(mad_sigma(value), float(np.quantile(np.abs(away), QUANTILE)) / ITS_SIGMAS, floor)
    return away / sigma if sigma > 0 else np.where(away == 0, 0.0, np.copysign(np.inf, away))


def _floor(run: Run, name: str) -> float:
    deviation = run.get("batch/std")
    if name in ("batch/mean", "batch/std") and deviation is not None:
        finite = deviation.finite().value
        return RELATIVE_FLOOR * float(np.median(finite)) if len(finite) else 0.0
    return FLOORS[name]


def _like(run: Run, series: Series) -> NDArray[np.bool_]:
    """Return which batches have the usual size, all of them where sizes differ anyway."""
    every = np.ones(len(series), dtype=bool)
    sizes = run.get(SIZE)
    if sizes is None or not np.array_equal(sizes.step, series.step):
        return every
    usual = float(np.median(sizes.value))
    like = np.abs(sizes.value - usual) <= LIKE * usual
    return like if float(like.mean()) >= 0.8 else every


def _groups(odd: list[Odd]) -> list[list[Odd]]:
    found: list[list[Odd]] = []
    for one in odd:
        if found and one.step - found[-1][-1].step <= NEIGHBOURS:
            found[-1].append(one)
        else:
            found.append([one])
    return found


def _finding(group: list[Odd], total: int) -> Finding:
    top = max(group, key=lambda odd: odd.score)
    words, high, low = _WORDS[top.metric]
    looks = high if top.value > top.usual else low
    steps = [odd.step for odd in group]
    where = f"The batch of step {steps[0]}" if len(steps) == 1 else f"{len(steps)} batches of steps {ranges(steps)}"
    more = f" It is one of {total} such places in this run." if total > 1 else ""
    far = "" if np.isinf(top.score) else f", {number(top.score)} robust standard deviations away"
    return Finding(
        detector="bad_batch",
        severity=Severity.WARNING,
        title="Bad batch",
        message=(
            f"{where} {'looks' if len(steps) == 1 else 'look'} like {looks}: {words.format(number(top.value))}"
            f"{'' if len(steps) == 1 else f' at step {top.step}'} where {number(top.usual)} is usual{far}.{more}"
        ),
        metric=top.metric,
        start_step=steps[0],
        end_step=steps[-1],
        peak_step=top.step,
        evidence={
            "value": top.value,
            "baseline": top.usual,
            "score": top.score,
            "count": len(steps),
            "steps": ranges(steps),
        },
        fixes=(
            "Look at these batches, and filter what made them out of the data.",
            "Rewind to a checkpoint before them and skip them: trainscope replay writes the plan.",
        ),
    )


DETECTOR = Detector("bad_batch", "Bad batch", (*FLOORS, NON_FINITE), Params(), detect)
