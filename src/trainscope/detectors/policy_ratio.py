"""policy_ratio: updates move the policy further than clipping can hold, and the reward does not follow.

What it finds
    A mean ratio of the new policy to the old one that is far from 1, or a clip fraction that stays high.
Algorithm
    Running medians, over 1/40 of the run, of the ratio or of the fraction; the first stretch that is beyond its limit
    for a tenth of the run and ten points. It is a warning if the reward falls with it by more than a standard error, or
    has not risen by two over the run; else an information, since policies of continuous actions learn at such
    fractions too.
Parameters
    ratio: largest mean ratio, or its inverse.
    clipped: largest share of tokens or actions that are clipped.
    points: fewest logged points.
False positives
    A reward that a curriculum lowers while large updates are meant, and one that is done and does not rise: 1 of 566
    made-up healthy logs with a ratio or a clip fraction.
Misses
    A ratio that is far out for single tokens, which the mean hides. With one update a batch the ratio is 1 and nothing
    is clipped, whatever the step does: see policy_kl.
Reference
    J. Schulman et al., "Proximal Policy Optimization Algorithms", 2017: clipped at 0.8 to 1.2, of which the mean of a
    policy that learns is close to 1. huggingface/trl's guide to PPO calls ratios of 2, 1000 and 0.1 too drastic;
    XueZeyue/DanceGRPO#17 (0.7 to 0.8 before the first update, many clipped, the reward falls). Healthy runs with
    language models clip under 5 %, Stable-Baselines3 on robots up to 30 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import is_reinforcement, tokens
from trainscope.core.policies import is_clip_share, is_ratio
from trainscope.core.robust import running_medians, stretches
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, number
from trainscope.detectors.engine.rewards import RISES, main_reward, rise

WINDOWS = 40
LASTS = 0.1
"""Share of the run that it must last."""
LEAST = 10
"""Points that it must last."""
ROSE = 2.0
"""Standard errors from which on a reward rose over the run: by chance in 2 runs of 100."""
PART = 0.2
"""Share of the run, and of the steps before, whose reward is compared."""


@dataclass(frozen=True, slots=True)
class Params:
    """When an update is too large."""

    ratio: float = 2.0
    """Ten times the usual distance of the clip range from 1."""
    clipped: float = 0.3
    """Of tokens or actions; the upper end of what healthy runs have."""
    points: int = 50
    """Logged points."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return at most one finding: for the ratio, else for the clip fraction."""
    if not is_reinforcement(tuple(run.series)):
        return Skipped("needs a reward")
    named = [(tokens(name), s.finite()) for name, s in run.series.items()]
    ratios, shares = ([s for words, s in named if known(words)] for known in (is_ratio, is_clip_share))
    if not any(len(s) >= params.points for s in (*ratios, *shares)):
        return Skipped(f"needs {params.points} points of a ratio of policies or of a clip fraction")
    reward = main_reward(run)
    for group, limit in ((ratios, math.log(params.ratio)), (shares, params.clipped)):
        for s in group:
            if len(s) >= params.points and (at := _beyond(s, limit, is_share=group is shares)) is not None:
                return [_finding(s, *at, reward, is_share=group is shares)]
    return []


def _beyond(series: Series, limit: float, *, is_share: bool) -> tuple[int, int] | None:
    """Return first and last index of the first lasting stretch beyond the limit."""
    medians = running_medians(series.value, WINDOWS)
    if not is_share:
        medians = np.abs(np.log(np.fmax(medians, float(np.finfo(np.float64).tiny))))
    for first, stop in stretches(medians > limit):
        if stop - first >= max(LEAST, LASTS * len(series)):
            return int(first), int(stop) - 1
    return None


def _judged(reward: Series | None, begin: int, end: int, first: int) -> tuple[Severity, str]:
    """Return how bad it is by what the reward does, and the sentence about it."""
    if reward is None or len(reward) < 10:
        return Severity.INFO, "The log has too little of a reward to judge it by."
    span = reward.step[-1] - reward.step[0]
    before = reward.value[(reward.step < begin) & (reward.step >= begin - PART * (reward.step[-1] - first))]
    during = reward.value[(reward.step >= begin) & (reward.step <= end)]
    if len(before) >= 3 and rise(before, during) < -RISES:
        had, has = float(np.median(before)), float(np.median(during))
        return Severity.WARNING, f"{reward.name} falls with it, from {number(had)} to {number(has)}."
    early = reward.value[reward.step <= reward.step[0] + PART * span]
    late = reward.value[reward.step >= reward.step[-1] - PART * span]
    if rise(early, late) <= ROSE:
        return Severity.WARNING, f"{reward.name} is no higher at the end of the run than at its start."
    return Severity.INFO, f"{reward.name} rose in this run all the same."


def _finding(series: Series, at: int, last: int, reward: Series | None, *, is_share: bool) -> Finding:
    begin, end = int(series.step[at]), int(series.step[last])
    severity, sentence = _judged(reward, begin, end, int(series.step[0]))
    value = series.value[at : last + 1]
    level = float(np.median(value))
    far = value if is_share else np.abs(np.log(np.fmax(value, float(np.finfo(np.float64).tiny))))
    what = "clipping cannot hold updates that are so large" if is_share else "it is near 1 where updates are small"
    return Finding(
        detector="policy_ratio",
        severity=severity,
        title="Too much is clipped" if is_share else "Policy ratio far from 1",
        message=f"{series.name} is {number(level)} from step {begin} to {end}; {what}. {sentence}",
        metric=series.name,
        start_step=begin,
        end_step=end,
        peak_step=int(series.step[at + int(np.argmax(far))]),
        evidence={"level": level},
        fixes=(
            "Before the first update of a batch the ratio must be 1: check that both log-probabilities are taken with "
            "the same mask, temperature, dropout and precision.",
            "Lower the learning rate, do fewer epochs on a batch, or stop them at a target KL.",
            "Raise the batch size or normalise the advantages.",
        ),
    )


DETECTOR = Detector("policy_ratio", "Too much is clipped", ("clip_fraction", "train/reward"), Params(), detect)
