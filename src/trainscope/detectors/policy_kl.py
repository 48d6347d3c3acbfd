"""policy_kl: the KL divergence of a policy blows up, or is negative, which no divergence can be.

What it finds
    A KL to the reference or between updates that leaves all it was before, by a power of ten and beyond what a
    policy survives, while the reward does not rise; and a mean KL that is clearly below 0 to the end.
Algorithm
    Running medians over 1/40 of the run, so that single batches do not count. A blow-up is a median of at least
    `factor` times the largest of all medians more than a tenth of the run earlier, and of at least `update` nat
    between updates or `reference` nat to a reference, that stays so over a tenth of the run or to its end. Nothing
    is said if the reward after it is higher than before it: a policy that begins to learn leaves its reference
    at once. Negative is a divergence of which nine in ten medians, over the last quarter of the run or more, are
    `below` nat under 0 or more; estimates from samples are below 0 by chance, but not by half a nat for long.
    Without a reward in the log a blow-up is information.
Parameters
    factor: smallest growth over all that was before.
    update: smallest KL between updates that counts, in nat.
    reference: smallest KL to a reference that counts, in the log's unit: nat per token or per completion.
    below: smallest distance of a mean KL from 0 that is no chance where it is negative, in the log's unit.
    points: fewest logged points.
False positives
    A log that writes the penalty (-KL) under the name of the divergence.
Misses
    A blow-up in the first fifth of the run or over more than a tenth of it, one in which the reward
    rises too (a reward that is exploited), one that the run survives within a tenth of it.
Reference
    J. Schulman et al., "Proximal Policy Optimization Algorithms", 2017; usual targets of the KL between updates are
    0.01 to 0.03. huggingface/open-r1#257 (the KL explodes, the reward goes to 0), huggingface/trl#235 (a negative KL
    is nearly always the beginning of a failed training).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import is_reinforcement, tokens
from trainscope.core.policies import is_reference_kl, is_update_kl
from trainscope.core.robust import lasting, running_medians, stretches
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, number
from trainscope.detectors.engine.rewards import beside, main_reward

WINDOWS = 40
RECENT = 0.1
"""Share of the run that a blow-up may take, and that it must last."""
HISTORY = 0.2
"""Share of the run without which nothing is known of its own level."""
TAIL = 0.25
"""Smallest share of the run over which a negative mean lasts."""


@dataclass(frozen=True, slots=True)
class Params:
    """When a divergence is beyond what a policy survives."""

    factor: float = 10.0
    """Of the largest median before; a KL that grows with the square of time doubles in a tenth of a run."""
    update: float = 0.1
    """Nat; several times the usual target."""
    reference: float = 5.0
    """Nat; per token a policy is far gone at 1, per completion of some hundred tokens it may be healthy at 5."""
    below: float = 0.5
    """Nat under 0."""
    points: int = 50
    """Logged points."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return at most one finding for each divergence of a policy."""
    if not is_reinforcement(tuple(run.series)):
        return Skipped("needs a reward")
    named = {name: tokens(name) for name, s in run.series.items() if len(s)}
    divergences = [
        (run.series[name].finite(), params.update if is_update_kl(words) else params.reference)
        for name, words in named.items()
        if is_update_kl(words) or is_reference_kl(words)
    ]
    enough = [(kl, bound) for kl, bound in divergences if len(kl) >= params.points]
    if not enough:
        return Skipped(f"needs {params.points} points of a KL divergence")
    reward = main_reward(run)
    found = (_negative(kl, params) or _blow_up(kl, bound, reward, params) for kl, bound in enough)
    return [f for f in found if f is not None]


def _blow_up(kl: Series, bound: float, reward: Series | None, params: Params) -> Finding | None:
    level, n = running_medians(kl.value, WINDOWS), len(kl)
    recent = max(5, int(RECENT * n))
    highest = np.maximum.accumulate(level)
    before = np.concatenate((np.full(recent, np.inf), highest[:-recent]))
    before[: max(int(HISTORY * n), recent)] = np.inf
    for first, _ in stretches(level >= np.maximum(params.factor * before, bound)):
        own = float(before[first])
        if not own > 0.0:
            continue
        high = level >= max(params.factor * own, bound)
        end = int(first + np.argmin(high[first:])) if not high[first:].all() else n
        if end - first < recent:
            continue
        return _told(kl, int(first), end, own, reward)
    return None


def _told(kl: Series, first: int, end: int, own: float, reward: Series | None) -> Finding | None:
    begin, last = int(kl.step[first]), int(kl.step[end - 1])
    judgement = beside(reward, begin, int(kl.step[0]))
    if judgement is None:
        return None
    level = float(np.median(kl.value[first:end]))
    return Finding(
        detector="policy_kl",
        severity=judgement.severity,
        title="KL divergence blows up",
        message=(
            f"{kl.name} is {number(level)} from step {begin} to {last}, {number(level / own)} times the highest level "
            f"before ({number(own)}). {judgement.sentence}"
        ),
        metric=kl.name,
        start_step=begin,
        end_step=last,
        peak_step=int(kl.step[first + int(np.argmax(kl.value[first:end]))]),
        evidence={"level": level, "before": own, "ratio": level / own, **judgement.evidence},
        fixes=(
            f"Go back to a checkpoint before step {begin}.",
            "Lower the learning rate or the clip range, do fewer epochs on a batch, or stop them at a target KL.",
            "Raise the weight of the KL penalty.",
        ),
    )


def _negative(kl: Series, params: Params) -> Finding | None:
    first = lasting(running_medians(kl.value, WINDOWS) <= -params.below)
    if first is None or len(kl) - first < TAIL * len(kl):
        return None
    level = float(np.median(kl.value[first:]))
    return Finding(
        detector="policy_kl",
        severity=Severity.WARNING,
        title="KL divergence is negative",
        message=(
            f"{kl.name} is below 0 from step {int(kl.step[first])} to the end, step {int(kl.step[-1])} (median "
            f"{number(level)}). A divergence is never negative: it is estimated on samples that the policy did not "
            "draw, or its sign is wrong."
        ),
        metric=kl.name,
        start_step=int(kl.step[first]),
        end_step=int(kl.step[-1]),
        peak_step=int(kl.step[first + int(np.argmin(kl.value[first:]))]),
        evidence={"level": level},
        fixes=(
            "Sample from the policy itself: no top-k, no top-p, temperature 1, no minimum length.",
            "Check the sign of the penalty, and that masked tokens are left out of the mean.",
            "Compare the log-probabilities of the sampler with those of the trainer on the same tokens.",
        ),
    )


DETECTOR = Detector("policy_kl", "KL divergence of a policy", ("kl", "train/reward"), Params(), detect)
