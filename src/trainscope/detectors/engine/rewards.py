"""What the reward of a run says about a fault of its policy: whether it rose after a step, and whether it is done."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.finding import Severity
from trainscope.core.metrics import Kind, kind, tokens
from trainscope.core.robust import lag1, mad_sigma
from trainscope.core.run import Run, Series
from trainscope.detectors.base import number

FloatArray = NDArray[np.float64]
CEILING = 0.05
"""A level this close to the largest value of the run, as a fraction of it, has nothing left to gain."""
EXTREMES = frozenset({"max", "min", "maximum", "minimum"})
"""Words of a reward that is one episode's, and not what the policy gets."""
COIN = 0.52
"""Mean accuracy from which on, with two standard errors to spare, a preference is learned."""
ENOUGH = 20
"""Points of an accuracy."""
HISTORY = 0.2
"""Share of the run before a fault that its reward is compared with."""
RISES = 1.0
"""Standard errors from which on a reward counts as higher: a warning must not depend on its noise."""


@dataclass(frozen=True, slots=True)
class Beside:
    """What the reward says about a fault of the policy."""

    severity: Severity
    sentence: str
    evidence: Mapping[str, float]


def main_reward(run: Run) -> Series | None:
    """Return the finite points of the run's reward: ``train/reward``, else the longest one; None without any."""
    main = run.get("train/reward")
    if main is None:
        rewards = [s for name, s in run.series.items() if kind(name) is Kind.REWARD]
        main = max(rewards, key=lambda s: (EXTREMES.isdisjoint(tokens(s.name)), len(s)), default=None)
    return main.finite() if main is not None and len(main) else None


def named(run: Run, *words: str) -> Series | None:
    """Return the finite points of the training metric whose name has these words, None without any."""
    for name, s in run.series.items():
        if tokens(name) in {words, ("train", *words)} and len(s):
            return s.finite()
    return None


def prefers(run: Run) -> bool:
    """Tell whether preference optimisation learned something, though its loss may show none of it.

    With a small beta the loss stays near ln 2 while the better answer gets the larger reward more and more often.
    """
    accuracy = named(run, "rewards", "accuracies")
    if accuracy is None or len(accuracy) < ENOUGH:
        return False
    late = accuracy.value[len(accuracy) // 4 :]
    return float(np.mean(late) - 2.0 * np.std(late) / math.sqrt(len(late))) > COIN


def rise(before: FloatArray, after: FloatArray) -> float:
    """Return by how much the second of two stretches lies higher, in standard errors; 0.0 where one is empty.

    Medians, each with the standard error that it has with autocorrelated noise.
    """
    if not len(before) or not len(after):
        return 0.0
    error = math.hypot(_error(before), _error(after))
    difference = float(np.median(after) - np.median(before))
    if difference == 0.0:
        return 0.0
    return difference / max(error, 1e-9 * abs(difference))


def beside(reward: Series | None, begin: int, first: int) -> Beside | None:
    """Return what the reward did when the policy went wrong at step `begin`; None where it rises, which is no fault.

    Parameters
    ----------
    first : int
        First step of the run.
    """
    if reward is None:
        return Beside(Severity.INFO, "The log has no reward to judge it by.", {})
    span = max(int(reward.step[-1]), begin) - first
    before = reward.value[(reward.step < begin) & (reward.step >= begin - HISTORY * span)]
    after = reward.value[reward.step >= begin]
    if rise(before, after) > RISES:
        return None
    if not len(before) or not len(after):
        return Beside(Severity.INFO, f"{reward.name} has no values on both sides of it.", {})
    had, has = float(np.median(before)), float(np.median(after))
    sentence = f"{reward.name} does not rise with it: {number(had)} before, {number(has)} since."
    return Beside(Severity.WARNING, sentence, {"reward_before": had, "reward": has})


def at_ceiling(reward: Series, since: int) -> bool:
    """Tell whether the reward from step `since` on is at the largest value of the run, and that is above 0."""
    late = reward.value[reward.step >= since]
    highest = float(reward.value.max())
    return highest > 0.0 and len(late) > 0 and float(np.median(late)) >= (1.0 - CEILING) * highest


def _error(value: FloatArray) -> float:
    memory = lag1(value)
    return 1.2533 * mad_sigma(value) * math.sqrt((1.0 + memory) / (1.0 - memory) / len(value))
