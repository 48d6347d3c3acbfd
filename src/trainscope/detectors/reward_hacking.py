"""reward_hacking: the reward rises with the length of the answers, and nothing held out rises with it.

What it finds
    A reward that rose while completions became twice as long, or twice as many were cut off, and a held-out score that
    is no higher than at first. It is an information: whether the longer answers are better, only somebody who reads
    them can tell.
Algorithm
    First and last fifth of the run: the reward must be higher by `sigmas` standard errors, the length or the
    truncated share higher by `factor`, the share also at least a tenth at the end. Held out is a score or a reward of
    evaluation data of at least eight points; the median of its second half must be no higher than that of its first
    fifth. Where there are several, none may be higher.
Parameters
    sigmas: smallest rise of the reward, in standard errors of the two levels.
    factor: smallest growth of the length or of the truncated share.
    points: fewest logged points of the reward and of the length.
False positives
    A held-out set that the model had solved before training. None in 245 made-up healthy logs with longer answers.
Misses
    A reward that is exploited without longer answers; a held-out score that rises by chance; every exploit in a log
    without a held-out score, where longer answers are what reinforcement learning of reasoning looks like.
Reference
    L. Gao et al., "Scaling Laws for Reward Model Overoptimization", ICML 2023; P. Singhal et al., "A Long Way to Go:
    Investigating Length Correlations in RLHF", 2023. D. Guo et al., "DeepSeek-R1", 2025, figure 3 (length grows while
    held-out accuracy rises).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trainscope.core import vocabulary
from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import Kind, is_reinforcement, kind, tokens
from trainscope.core.policies import is_length, is_truncated_share
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, number
from trainscope.detectors.engine.rewards import main_reward, rise

PART = 5
"""Of the run, at its start and at its end."""
OFTEN = 0.1
"""Share of completions that are cut off, below which twice as many are still few."""
HELD_OUT = 8
"""Points of a held-out score."""


@dataclass(frozen=True, slots=True)
class Params:
    """When answers grow with the reward."""

    sigmas: float = 3.0
    """Standard errors."""
    factor: float = 2.0
    """Of the first fifth of the run."""
    points: int = 50
    """Logged points."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return at most one finding."""
    if not is_reinforcement(tuple(run.series)):
        return Skipped("needs a reward")
    reward = main_reward(run)
    length, cut = _first(run, is_length), _first(run, is_truncated_share)
    grown = [s for s in (length, cut) if s is not None and len(s) >= params.points]
    if reward is None or len(reward) < params.points or not grown:
        return Skipped(f"needs {params.points} points of a reward and of the length of completions")
    held = _held_out(run)
    if not held:
        return Skipped(f"needs {HELD_OUT} points of a held-out score")
    few = len(reward) // PART
    if rise(reward.value[:few], reward.value[-few:]) < params.sigmas:
        return []
    if any(_rose(s) for s in held):
        return []
    for s in grown:
        first, last = _levels(s)
        if last > 0.0 and last >= max(params.factor * first, OFTEN if s is cut else 0.0):
            return [_finding(reward, s, (first, last), held[0])]
    return []


def _first(run: Run, known: Callable[[tuple[str, ...]], bool]) -> Series | None:
    return next((s.finite() for name, s in run.series.items() if known(tokens(name)) and len(s)), None)


def _held_out(run: Run) -> list[Series]:
    unseen = vocabulary.EVAL | vocabulary.TEST
    scores = (
        s.finite()
        for name, s in run.series.items()
        if kind(name) in (Kind.SCORE, Kind.REWARD) and not unseen.isdisjoint(tokens(name))
    )
    return [s for s in scores if len(s) >= HELD_OUT]


def _rose(score: Series) -> bool:
    early = float(np.median(score.value[: max(3, len(score) // PART)]))
    return float(np.median(score.value[len(score) // 2 :])) > early


def _levels(s: Series) -> tuple[float, float]:
    few = len(s) // PART
    return float(np.median(s.value[:few])), float(np.median(s.value[-few:]))


def _finding(reward: Series, grown: Series, levels: tuple[float, float], held: Series) -> Finding:
    had, has = _levels(reward)
    begin, end = int(reward.step[len(reward) // PART]), int(reward.step[-1])
    return Finding(
        detector="reward_hacking",
        severity=Severity.INFO,
        title="Reward rises with longer answers only",
        message=(
            f"{reward.name} rose from {number(had)} to {number(has)} by step {end} while {grown.name} went from "
            f"{number(levels[0])} to {number(levels[1])}, and {held.name} does not rise: the policy may exploit the "
            "reward."
        ),
        metric=reward.name,
        start_step=begin,
        end_step=end,
        peak_step=end,
        evidence={"reward_first": had, "reward": has, "first": levels[0], "last": levels[1]},
        fixes=(
            "Read ten answers of the last steps beside ten of the first.",
            "Evaluate on held-out prompts with another judge than the reward.",
            "Let the reward take off for answers that are cut off or repeat themselves; raise the KL penalty.",
        ),
    )


DETECTOR = Detector(
    "reward_hacking",
    "Reward rises with longer answers only",
    ("train/reward", "completions/mean_length"),
    Params(),
    detect,
)
