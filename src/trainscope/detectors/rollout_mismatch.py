"""rollout_mismatch: the engine that samples gives the same tokens other probabilities than the trainer does.

What it finds
    A distance between sampler and trainer at which runs are reported to fail, one that has grown to several times
    what it was and stays, and one that grows while the learning rate is 0 and the weights are the same.
Algorithm
    The distance is whatever the log has of: mean absolute difference of log-probability or of probability, KL, mean
    factor, mean ratio. Its running medians, over 1/40 of the run, must be beyond the limit of its kind to the end in
    nine of ten, over a tenth of the run and ten points. Grown is a distance of `factor` times its median in the first
    fifth that is also beyond a `factor`-th of the limit (of a KL, which goes with the square of the difference, the
    square of `factor` counts). At a learning rate of 0 the last third of the stretch must be 1.5 times as high as the
    first, by five standard errors. Of several distances the one furthest beyond its limit is told.
Parameters
    nats: largest mean absolute difference of log-probability; also of a mean factor, less 1.
    probability: largest mean absolute difference of probability.
    divergence: largest KL, in nat.
    ratio: largest mean ratio, or its inverse.
    factor: smallest growth of a difference that counts below the limit.
    points: fewest logged points.
False positives
    A run that is off policy on purpose (old rollouts, another model as sampler) and logs that as its mismatch; rows of
    demonstrations whose log-probabilities the sampler never gave. None in 469 made-up healthy logs.
Misses
    A distance that grows less than threefold, or that is there from the start and below the limit: engines differ by
    0.003 to 0.03 nat a token in runs that are healthy. Single sequences far out, which the mean hides.
Reference
    THUDM/slime fails its tests from 0.1 nat on, and Gen-Verse/OpenClaw-RL#69 is a run in trouble at 0.2 to 0.4;
    vllm-project/vime#64 has 0.011 to 0.036. Differences of probability are 0.003 (bfloat16), 0.006 (experts) and 0.012
    (8 bit) in healthy runs of verl, whose guide to rollout correction warns of a KL beyond 0.1 and of mean weights
    outside 0.5 to 2; NeMo RL's guide to GRPO warns of a factor that climbs past 1.01 to 1.02. Growth at learning rate
    0: allenai/open-instruct#1473. J. Liu et al., "When Speed Kills Stability", 2025.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import is_reinforcement, tokens
from trainscope.core.policies import Gap, gap
from trainscope.core.robust import lasting, running_medians, stretches
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, number
from trainscope.detectors.engine.rewards import rise

FloatArray = NDArray[np.float64]
WINDOWS = 40
HISTORY = 0.2
"""Share of the run that says what the distance was."""
LASTS = 0.1
"""Share of the run that it must last."""
LEAST = 10
"""Points that it must last."""
AT_REST = 1.5
SURELY = 5.0
"""Growth, and its standard errors, while the weights do not change: prompts differ from step to step."""


@dataclass(frozen=True, slots=True)
class Params:
    """When two engines are too far apart; the mean over tokens."""

    nats: float = 0.1
    """Nat a token; the bound of slime's own tests, three times what healthy runs reach."""
    probability: float = 0.05
    """Four times that of a sampler in 8 bit."""
    divergence: float = 0.1
    """Nat a token; the bound of verl's guide."""
    ratio: float = 2.0
    """The bound of verl's guide, and where most corrections truncate."""
    factor: float = 3.0
    """Of the first fifth of the run; a policy that becomes more or less certain moves it by less."""
    points: int = 40
    """Logged points."""


@dataclass(frozen=True, slots=True)
class Departure:
    """A distance that is too large, from the index `first` on."""

    series: Series
    first: int
    last: int
    """Included."""
    level: float
    """Median since, as logged."""
    before: float | None
    """Median in the first fifth, where it has grown; None where the distance is beyond the limit."""
    beyond: float
    """Distance in units of the limit."""
    at_rest: bool = False


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return at most one finding, for the distance that is furthest beyond its limit."""
    if not is_reinforcement(tuple(run.series)):
        return Skipped("needs a reward")
    known = [(s.finite(), kind) for name, s in run.series.items() if (kind := gap(tokens(name))) is not None]
    enough = [(s, kind) for s, kind in known if len(s) >= params.points]
    if not enough:
        return Skipped(f"needs {params.points} points of a difference between sampler and trainer")
    rate = run.get("learning_rate")
    found = [d for s, kind in enough if (d := _departure(s, kind, rate, params)) is not None]
    if not found:
        return []
    worst = max(found, key=lambda d: (d.at_rest, d.before is None, d.beyond))
    return [_finding(worst, len(found) - 1)]


def _distance(value: FloatArray, kind: Gap) -> FloatArray:
    """Return how far apart sampler and trainer are; 0 where they agree."""
    if kind is Gap.FACTOR:
        return value - 1.0
    if kind is Gap.RATIO:
        return np.abs(np.log(np.fmax(value, float(np.finfo(np.float64).tiny))))
    return np.abs(value)


def _limits(kind: Gap, params: Params) -> tuple[float, float]:
    """Return the largest distance, and the growth that counts below it."""
    far = {
        Gap.LOG_PROBABILITY: params.nats,
        Gap.FACTOR: params.nats,
        Gap.PROBABILITY: params.probability,
        Gap.DIVERGENCE: params.divergence,
        Gap.RATIO: math.log(params.ratio),
    }[kind]
    return far, params.factor**2 if kind is Gap.DIVERGENCE else params.factor


def _departure(series: Series, kind: Gap, rate: Series | None, params: Params) -> Departure | None:
    far, growth = _limits(kind, params)
    value = _distance(series.value, kind)
    n = len(series)
    at_rest = None if rate is None else _at_rest(series, value, rate, params)
    if at_rest is not None:
        first, last, own, level = at_rest
        return Departure(series, first, last, level, own, level / far, at_rest=True)
    medians = running_medians(value, WINDOWS)
    own = float(np.median(value[: max(5, int(HISTORY * n))]))
    for limit, grown in ((far, False), (max(growth * own, far / growth), True)):
        first_ = lasting(medians >= limit)
        if first_ is not None and n - first_ >= max(LEAST, LASTS * n):
            level = float(np.median(series.value[first_:]))
            before = float(np.median(series.value[: max(5, int(HISTORY * n))])) if grown else None
            return Departure(series, first_, n - 1, level, before, float(np.median(value[first_:])) / far)
    return None


def _at_rest(series: Series, value: FloatArray, rate: Series, params: Params) -> tuple[int, int, float, float] | None:
    """Return first and last index and the two levels of a distance that grows while the learning rate is 0."""
    at = np.searchsorted(rate.step, series.step, side="right") - 1
    resting = (at >= 0) & (rate.value[np.maximum(at, 0)] == 0.0) if len(rate) else np.zeros(len(series), dtype=bool)
    for first, stop in stretches(resting):
        third = (stop - first) // 3
        if stop - first < params.points or third < LEAST:
            continue
        early, late = value[first : first + third], value[stop - third : stop]
        own, level = float(np.median(early)), float(np.median(late))
        if level >= AT_REST * own and rise(early, late) >= SURELY:
            return int(first), int(stop) - 1, own, level
    return None


def _finding(departure: Departure, others: int) -> Finding:
    series = departure.series
    begin, end = int(series.step[departure.first]), int(series.step[departure.last])
    evidence: dict[str, float | int | str] = {"level": departure.level, "beyond": departure.beyond}
    if departure.at_rest:
        told = (
            f"grows from {number(departure.before or 0.0)} to {number(departure.level)} between steps {begin} and "
            f"{end}, while the learning rate is 0: the weights are the same, so that one of the two engines is not"
        )
    elif departure.before is not None:
        told = (
            f"is {number(departure.level)} from step {begin} to the end, step {end}, and was "
            f"{number(departure.before)} at first: sampler and trainer drift apart"
        )
    else:
        told = (
            f"is {number(departure.level)} from step {begin} to the end, step {end}, {number(departure.beyond)} times "
            "the level from which on trouble is reported: the policy learns from tokens that are not its own"
        )
    if departure.before is not None:
        evidence["before"] = departure.before
    also = (
        f" {others} more in the log say so too."
        if others > 1
        else " One more in the log says so too."
        if others
        else ""
    )
    return Finding(
        detector="rollout_mismatch",
        severity=Severity.ERROR if departure.at_rest else Severity.WARNING,
        title="Sampler and trainer disagree",
        message=f"{series.name} {told}.{also}",
        metric=series.name,
        start_step=begin,
        end_step=end,
        peak_step=begin,
        evidence=evidence,
        fixes=(
            "Compare the log-probabilities of one sequence from both engines: temperature, top-p, penalties and the "
            "template must be in both or in neither, and the sampler must have the weights of this step.",
            "Run both in the same precision, the last layer in float32; fix the routing of experts by replaying it.",
            "Then correct what is left: truncated importance sampling, or leave such sequences out.",
        ),
    )


DETECTOR = Detector(
    "rollout_mismatch",
    "Sampler and trainer disagree",
    ("train/rollout_logprob_difference", "train/reward"),
    Params(),
    detect,
)
