"""preference_margin: preference optimisation that learns nothing, or that makes the better answer unlikely too.

What it finds
    A run of DPO whose accuracy is that of a coin and whose loss is still ln 2 in the last three quarters. As
    information: a margin that grows while the log-probability of the chosen answers falls far below its first level.
Algorithm
    Points after the first quarter of the run. Nothing is learned if the loss began near ln 2 and each of eight
    block medians is within `near` of it, and if the accuracy is at most `coin`: its mean with one standard error, and
    the mean of its last third. The log-probability has fallen if its level at the end is `fall` of the first one
    lower while the margin rose. That the rewards of chosen and rejected answers both fall is normal and not judged.
Parameters
    near: largest distance of the loss from ln 2.
    coin: largest accuracy of a coin.
    fall: smallest fall of the log-probability, as a share of its first level.
    points: fewest logged points.
    steps: fewest optimizer steps.
False positives
    A learning rate so low that a healthy run has not begun to move after `steps` steps.
Misses
    Losses that do not start at ln 2 (IPO, ORPO, SimPO, label smoothing), and a run that learned a little and stopped.
Reference
    R. Rafailov et al., "Direct Preference Optimization", 2023: the loss is -ln sigmoid of the margin, ln 2 at the
    start; eric-mitchell/direct-preference-optimization#8 (both rewards fall in healthy runs); A. Pal et al., "Smaug",
    2024 (the chosen log-probability falls).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.finding import Finding, Severity
from trainscope.core.robust import block_medians
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, number
from trainscope.detectors.engine.rewards import named, rise

FloatArray = NDArray[np.float64]
BLOCKS = 8
LN2 = math.log(2.0)
RISEN = 3.0
"""Standard errors from which on the margin has grown."""


@dataclass(frozen=True, slots=True)
class Params:
    """What counts as a coin, and as a fall."""

    near: float = 0.005
    """Nat; a margin of 0.01."""
    coin: float = 0.55
    """Of the pairs, with the standard error of the mean; 0 where both answers get exactly the same."""
    fall: float = 0.5
    """Of the first log-probability; healthy runs lose a tenth."""
    points: int = 40
    """Logged points."""
    steps: int = 200
    """Optimizer steps."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding for a run that learns nothing, or one for chosen answers that became unlikely."""
    accuracy, margin, chosen = (
        named(run, *words) for words in (("rewards", "accuracies"), ("rewards", "margins"), ("logps", "chosen"))
    )
    loss = run.get("train/loss")
    if accuracy is None:
        return Skipped("needs rewards/accuracies")
    if len(accuracy) < params.points:
        return Skipped(f"needs {params.points} points of rewards/accuracies")
    found = None
    if loss is not None and len(loss.finite()) >= params.points:
        found = _coin(loss.finite(), accuracy, params)
    if found is None and margin is not None and chosen is not None:
        found = _unlikely(margin, chosen, params)
    return [] if found is None else [found]


def _late(s: Series) -> FloatArray:
    return s.value[len(s) // 4 :]


def _coin(loss: Series, accuracy: Series, params: Params) -> Finding | None:
    begin, end = int(loss.step[len(loss) // 4]), int(loss.step[-1])
    if end - int(loss.step[0]) < params.steps or abs(float(np.median(loss.value[:5])) - LN2) > 10.0 * params.near:
        return None
    late, right = _late(loss), _late(accuracy)
    blocks = block_medians(late, len(late) // BLOCKS)
    if np.any(np.abs(blocks - LN2) > params.near):
        return None
    level = float(np.mean(right))
    surely_below = level + float(np.std(right)) / math.sqrt(len(right))
    if max(surely_below, float(np.mean(right[-len(right) // 3 :]))) > params.coin:
        return None
    return Finding(
        detector="preference_margin",
        severity=Severity.WARNING,
        title="No preference is learned",
        message=(
            f"From step {begin} to {end} {loss.name} is {number(float(np.median(late)))}, which is ln 2, and "
            f"{accuracy.name} is {number(level)}: the policy prefers neither answer."
        ),
        metric=accuracy.name,
        start_step=begin,
        end_step=end,
        peak_step=end,
        evidence={"accuracy": level, "loss": float(np.median(late))},
        fixes=(
            "Check that the policy has parameters that train, and that the reference is not the same object.",
            "Check that chosen and rejected differ after the template and the truncation.",
            "Raise the learning rate or beta.",
        ),
    )


def _unlikely(margin: Series, chosen: Series, params: Params) -> Finding | None:
    if min(len(margin), len(chosen)) < params.points:
        return None
    few = max(5, len(chosen) // 10)
    first, last = float(np.median(chosen.value[:few])), float(np.median(chosen.value[-few:]))
    if first >= 0.0 or last > (1.0 + params.fall) * first:
        return None
    tenth = max(5, len(margin) // 10)
    if rise(margin.value[:tenth], margin.value[-tenth:]) < RISEN:
        return None
    low = np.flatnonzero(block_medians(chosen.value, 5) <= (1.0 + params.fall) * first)
    begin, end = int(chosen.step[5 * int(low[0])]), int(chosen.step[-1])
    grown = float(np.median(margin.value[-tenth:]))
    return Finding(
        detector="preference_margin",
        severity=Severity.INFO,
        title="Chosen answers become unlikely",
        message=(
            f"{margin.name} grew to {number(grown)} while {chosen.name} fell from {number(first)} to {number(last)} by "
            f"step {end}: the chosen answers became unlikely too, only less so than the rejected ones."
        ),
        metric=chosen.name,
        start_step=begin,
        end_step=end,
        peak_step=end,
        evidence={"first": first, "last": last, "margin": grown},
        fixes=(
            "Look at what the model writes: a likelihood that fell by half of its logarithm often shows.",
            "Add a term for the likelihood of the chosen answers, lower the learning rate, or raise beta.",
        ),
    )


DETECTOR = Detector(
    "preference_margin", "No preference is learned", ("train/loss", "rewards/accuracies"), Params(), detect
)
