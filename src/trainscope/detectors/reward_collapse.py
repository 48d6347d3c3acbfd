"""reward_collapse: the reward was learned, then lost, and does not come back.

What it finds
    A reward or episode return that had clearly risen and at the end of the run is back near where it began.
Algorithm
    Medians of about 40 blocks, smoothed over three, so that single episodes do not count. What was gained is the
    best block less the first ones; it must be `sigmas` times the noise from block to block, and so must what was
    lost. It counts when `lost` of the gain is gone in the last tenth of the run and no block since the fall is back
    at half of it: a policy that dips and recovers is left alone.
Parameters
    lost: smallest share of the gain that must be gone at the end.
    sigmas: smallest gain and fall, in standard deviations of the noise of the blocks.
    points: fewest logged rewards.
False positives
    A curriculum or an environment that is made harder on purpose, and a reward whose scale is changed in the run.
Misses
    A policy that was good from the start (a tuned language model) and only gets worse: without a gain, a fall
    cannot be told from a harder batch. A collapse within the last tenth of the run.
Reference
    S. Dohare et al., "Overcoming Policy Collapse in Deep Reinforcement Learning", EWRL 2023 (PPO learns Ant and
    then loses it all).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import Kind, is_reinforcement
from trainscope.core.robust import block_medians, difference_sigma
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, by_kind, number

BLOCKS = 40
ALL = 0.9
"""From this share of the gain on, all of it counts as lost."""


@dataclass(frozen=True, slots=True)
class Params:
    """Thresholds without units, so that they fit any reward."""

    lost: float = 0.7
    """Share of the gain; policies that go on learning lose and regain half of it."""
    sigmas: float = 8.0
    """Standard deviations of the noise of the blocks."""
    points: int = 100
    """Logged rewards."""


@dataclass(frozen=True, slots=True)
class Fall:
    """A reward that was lost; indices into the finite points."""

    best: int
    start: int
    first: float
    level: float
    last: float
    score: float

    @property
    def share(self) -> float:
        """Lost share of what was gained."""
        return (self.level - self.last) / (self.level - self.first)


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding for the reward that collapsed (the main one, if there are several)."""
    if not is_reinforcement(tuple(run.series)):
        return Skipped("needs a reward")
    main = run.get("train/reward")
    rewards = [s.finite() for s in ([main] if main is not None else by_kind(run, Kind.REWARD))]
    enough = [s for s in rewards if len(s) >= params.points]
    if not enough:
        return Skipped(f"needs {params.points} points of a reward")
    fallen = [(s, fall) for s in enough if (fall := _fall(s, params)) is not None]
    if not fallen:
        return []
    reward, fall = max(fallen, key=lambda pair: pair[1].score)
    return [_finding(reward, fall, len(fallen) - 1)]


def _fall(reward: Series, params: Params) -> Fall | None:
    size = max(1, len(reward) // BLOCKS)
    blocks = block_medians(reward.value, size)
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(np.pad(blocks, 1, mode="edge"), 3), axis=1)
    few = max(2, len(blocks) // 10)
    best = int(np.argmax(smooth))
    first, level, last = float(np.median(blocks[:few])), float(smooth[best]), float(np.median(blocks[-few:]))
    gained = level - first
    noise = max(difference_sigma(blocks), 1e-3 * abs(gained), float(np.finfo(np.float64).tiny))
    score = min(gained, level - last) / noise
    if best < few or score < params.sigmas or level - last < params.lost * gained:
        return None
    low = smooth <= level - 0.5 * gained
    start = best + int(np.argmax(low[best:]))
    if not low[start:].all():
        return None
    return Fall(best * size, min(len(reward) - 1, start * size), first, level, last, score)


def _finding(reward: Series, fall: Fall, others: int) -> Finding:
    best, start, end = int(reward.step[fall.best]), int(reward.step[fall.start]), int(reward.step[-1])
    also = f" So did {others} more." if others else ""
    return Finding(
        detector="reward_collapse",
        severity=Severity.ERROR if fall.share >= ALL else Severity.WARNING,
        title="Reward collapses",
        message=(
            f"{reward.name} rose from {number(fall.first)} to {number(fall.level)} by step {best}, fell from step "
            f"{start} on, and is at {number(fall.last)} at the end, step {end}.{also}"
        ),
        metric=reward.name,
        start_step=start,
        end_step=end,
        peak_step=end,
        evidence={
            "first": fall.first,
            "best": fall.level,
            "best_step": best,
            "last": fall.last,
            "lost": fall.share,
            "score": fall.score,
        },
        fixes=(
            f"Use the checkpoint of step {best}.",
            "Lower the learning rate, clip the gradient norm, or anneal both; make each policy update smaller.",
            "Keep the entropy up: a policy that is certain cannot find its way back.",
        ),
    )


DETECTOR = Detector("reward_collapse", "Reward collapses", ("train/reward",), Params(), detect)
