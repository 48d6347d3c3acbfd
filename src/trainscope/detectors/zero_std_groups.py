"""zero_std_groups: in most groups every completion has the same reward, so that nothing is learned from them.

What it finds
    A run of GRPO or a method of its kind in which, to the end, nearly all groups have no spread of rewards: their
    advantages are 0, and so is the gradient. Where some prompts are solved it is information.
Algorithm
    The share of dead groups is ``frac_reward_zero_std``, or whether ``reward_std`` is exactly 0 where that is all the
    log has. Of about 40 block means nine in ten must be at least `dead`, to the end, over `share` of the run and at
    least `points` points. The reward in that stretch must be near the lowest of the run, and no higher than in the
    first tenth.
Parameters
    dead: smallest share of groups without spread.
    share: smallest part of the run over which it lasts.
    points: fewest logged points of it.
False positives
    A run that finds its first rewards after the log ends.
Misses
    A stretch that ends, however long, and groups whose rewards differ from one group to another but never within
    one: some prompts seem solved. A constant reward above 0 may be the maximum.
Reference
    Z. Shao et al., "DeepSeekMath", 2024 (advantages are relative to the group); Q. Yu et al., "DAPO", 2025, section
    3.2 (dynamic sampling leaves such groups out); huggingface/trl#3452.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import is_reinforcement, tokens
from trainscope.core.policies import is_dead_share, is_group_spread
from trainscope.core.robust import lasting
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, number
from trainscope.detectors.engine.rewards import at_ceiling, main_reward, rise

BLOCKS = 40
RISES = 1.0
"""Standard errors from which on the reward counts as higher."""
LOWEST = 0.1
"""Of the range of the reward; above it some prompts are solved, and others never will be."""


@dataclass(frozen=True, slots=True)
class Params:
    """When groups are dead for too long."""

    dead: float = 0.9
    """Of the groups; hard prompts leave half of them without signal in healthy runs."""
    share: float = 0.5
    """Of the run; a model that gets no reward at first may find it later."""
    points: int = 50
    """Logged points."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return at most one finding."""
    if not is_reinforcement(tuple(run.series)):
        return Skipped("needs a reward")
    dead = _dead(run)
    reward = main_reward(run)
    if dead is None or reward is None or len(dead) < params.points:
        return Skipped(f"needs {params.points} points of frac_reward_zero_std or reward_std")
    at = _since(dead, params)
    return [] if at is None else [_finding(dead, at, reward)]


def _dead(run: Run) -> Series | None:
    """Return the share of dead groups."""
    for name, s in run.series.items():
        if is_dead_share(tokens(name)):
            return s.finite()
    for name, s in run.series.items():
        if is_group_spread(tokens(name)):
            spread = s.finite()
            return Series(name, spread.step, (spread.value == 0.0).astype(np.float64))
    return None


def _since(dead: Series, params: Params) -> int | None:
    """Return the index from which nearly all groups are dead to the end, None if there is none."""
    size = max(1, len(dead) // BLOCKS)
    count = len(dead) // size
    ends = np.append(np.arange(size, count * size, size), len(dead))
    blocks = np.diff(np.concatenate(([0.0], np.cumsum(dead.value)[ends - 1]))) / np.diff(np.append(0, ends))
    full = blocks >= params.dead
    since = lasting(full)
    if since is None:
        return None
    at = since * size
    enough = len(dead) - at >= max(params.points, params.share * len(dead))
    return at if enough and full[-1] else None


def _finding(dead: Series, at: int, reward: Series) -> Finding:
    begin, end = int(dead.step[at]), int(dead.step[-1])
    tenth = dead.step[0] + 0.1 * (end - dead.step[0])
    early, late = reward.value[reward.step <= tenth], reward.value[reward.step >= begin]
    level = float(np.median(late)) if len(late) else float("nan")
    lowest, highest = float(reward.value.min()), float(reward.value.max())
    nothing = level <= lowest + LOWEST * (highest - lowest)
    solved = not nothing or rise(early, late) > RISES or at_ceiling(reward, begin)
    share = float(np.mean(dead.value[at:]))
    what = "nothing is left to learn from these prompts" if solved else "there is nothing to learn from"
    return Finding(
        detector="zero_std_groups",
        severity=Severity.INFO if solved else Severity.WARNING,
        title="Groups are solved" if solved else "Groups without signal",
        message=(
            f"In {number(100.0 * share)} % of the groups all completions have the same reward, from step {begin} to "
            f"the end, step {end} ({dead.name}); {reward.name} is {number(level)}: {what}."
        ),
        metric=dead.name,
        start_step=begin,
        end_step=end,
        peak_step=begin,
        evidence={"share": share, "reward": level},
        fixes=(
            "Choose prompts that the model solves sometimes, neither always nor never; leave out dead groups.",
            "Check the reward function on a completion that is right: a parser that fails gives all of them the same.",
            "Draw more completions for each prompt, at a higher temperature.",
        ),
    )


DETECTOR = Detector(
    "zero_std_groups", "Groups without signal", ("frac_reward_zero_std", "train/reward"), Params(), detect
)
