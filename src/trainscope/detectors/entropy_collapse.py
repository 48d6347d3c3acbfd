"""entropy_collapse: a policy became certain early, and what it became certain of is no better than chance.

What it finds
    A policy entropy that falls to nearly nothing in the first half of the run and stays there, while the reward is no
    higher than at the start. If the reward rose, or is at its maximum, that is information.
Algorithm
    Medians of about 40 blocks. The first level is that of the first blocks; the entropy is gone where the median is at
    most `left` of it, from the first half of the run on, to the end in nine of ten blocks. Then the reward since is
    compared with that of the first tenth. A healthy entropy falls too, and pays for the reward: R = b - a exp(H). One
    that is gone has nothing left to pay with.
    An entropy that changes its sign is that of a continuous policy, which has no floor, and is not judged;
    neither is one beside a logged standard deviation of the policy. One that is never positive is taken
    for its negative if its name has "loss" in it, as in Stable-Baselines3.
Parameters
    left: largest entropy that counts as gone, as a share of the first level.
    points: fewest logged points.
False positives
    A task that is solved from the start with a reward that is never above 0; an ``entropy_loss`` that includes a
    coefficient which is annealed to 0, in a run that learns nothing for another reason.
Misses
    A collapse after half of the run or to more than a twentieth of the first level, and one that follows some learning:
    that the reward could have risen further cannot be told from the log.
Reference
    G. Cui et al., "The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models", 2025; Q. Yu et
    al., "DAPO", 2025, section 3.1 (clip-higher).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import is_reinforcement, tokens
from trainscope.core.policies import is_entropy
from trainscope.core.robust import block_medians, lasting
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, number
from trainscope.detectors.engine.rewards import at_ceiling, main_reward, rise

BLOCKS = 40
EARLY = 0.5
"""Share of the run after which it is no loss to be certain."""
RISES = 2.0
"""Standard errors from which on the reward counts as higher: by chance in 2 runs of 100."""


@dataclass(frozen=True, slots=True)
class Params:
    """When an entropy is gone."""

    left: float = 0.05
    """Of the first level; language models that learn for long keep a tenth and more."""
    points: int = 50
    """Logged points."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return at most one finding for each entropy of a policy."""
    if not is_reinforcement(tuple(run.series)):
        return Skipped("needs a reward")
    if any(
        words[-1:] == ("std",) and not {"reward", "rew", "return"} & set(words) for words in map(tokens, run.series)
    ):
        return Skipped("the entropy of a continuous policy has no floor")
    entropies = [_positive(s.finite()) for name, s in run.series.items() if is_entropy(tokens(name))]
    enough = [s for s in entropies if s is not None and len(s) >= params.points]
    reward = main_reward(run)
    if not enough or reward is None:
        return Skipped(f"needs {params.points} points of the entropy of a policy")
    found = (_gone(entropy, reward, params) for entropy in enough)
    return [f for f in found if f is not None]


def _positive(entropy: Series) -> Series | None:
    """Return an entropy with its right sign, None if it has none."""
    if not len(entropy):
        return None
    if float(entropy.value.min()) >= 0.0:
        return entropy
    if float(entropy.value.max()) <= 0.0 and "loss" in tokens(entropy.name):
        return Series(entropy.name, entropy.step, -entropy.value)
    return None


def _gone(entropy: Series, reward: Series, params: Params) -> Finding | None:
    size = max(1, len(entropy) // BLOCKS)
    blocks = block_medians(entropy.value, size)
    first = float(np.median(blocks[:2]))
    since = lasting(blocks <= params.left * first)
    if since is None or first <= 0.0 or since > EARLY * len(blocks):
        return None
    at = since * size
    begin, end = int(entropy.step[at]), int(entropy.step[-1])
    start = entropy.step[0] + 0.1 * (end - entropy.step[0])
    early, late = reward.value[reward.step <= min(start, begin)], reward.value[reward.step >= begin]
    if len(early) < 3 or len(late) < 10:
        return None
    had, has = float(np.median(early)), float(np.median(late))
    learned = rise(early, late) > RISES or at_ceiling(reward, begin)
    level = float(np.median(entropy.value[at:]))
    what = "what it learned is all it will learn" if learned else "it became certain of nothing that pays"
    return Finding(
        detector="entropy_collapse",
        severity=Severity.INFO if learned else Severity.WARNING,
        title="Entropy is used up" if learned else "Entropy collapses",
        message=(
            f"{entropy.name} fell from {number(first)} to {number(level)} by step {begin} and stays there to the end, "
            f"step {end}; {reward.name} went from {number(had)} to {number(has)}: {what}."
        ),
        metric=entropy.name,
        start_step=begin,
        end_step=end,
        peak_step=begin,
        evidence={"first": first, "level": level, "reward_first": had, "reward": has},
        fixes=(
            "Raise the weight of the entropy, or the upper clip range; lower the learning rate.",
            "Check the sign of the entropy term and of the advantages.",
            "Sample at a higher temperature, with more completions for each prompt.",
        ),
    )


DETECTOR = Detector("entropy_collapse", "Entropy collapses", ("entropy", "train/reward"), Params(), detect)
