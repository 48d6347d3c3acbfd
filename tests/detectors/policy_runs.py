"""Policies and preference optimisation as trainers log them, healthy and with one planted fault. Truth for tests."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from policies import Task, heavy, preferences, trained
from synthetic import noise

from trainscope.core.finding import Severity

from .planted import Planted
from .runs import ROWS, FloatArray, at, run_of

Metrics = dict[str, FloatArray]


def learner(n: int = ROWS, seed: int = 0, **other: float) -> Metrics:
    """Return the log of a policy that is trained in groups and learns; `other` goes to the task."""
    task = Task(**{"rows": n, "rate": 0.2, "hard": 0.2, "entropy": 0.02, **other})
    log = trained(np.random.default_rng(seed), task)
    return {"train/reward": log.pop("reward"), **log}


def divergence(
    n: int = ROWS, seed: int = 0, *, blown: int | None = None, times: float = 1000.0, spread: float = 0.3
) -> FloatArray:
    """Return a KL that grows to 0.05 with time, and to `times` that at once from the index `blown` on."""
    level = 0.05 * np.linspace(0.01, 1.0, n)
    if blown is not None:
        level[blown:] *= times
    return heavy(np.random.default_rng(seed), level, spread)


def rewards(n: int = ROWS, seed: int = 0, gain: float = 0.5, lost: int | None = None) -> FloatArray:
    """Return a reward that gains `gain` with noise, and loses a fifth of it from the index `lost` on."""
    level = 0.2 + gain * (1.0 - np.exp(-4.0 * np.linspace(0.0, 1.0, n)))
    if lost is not None:
        level[lost:] = level[lost] - 0.2 * gain
    return np.asarray(level + 0.05 * noise(np.random.default_rng([seed, 1]), n, "t3", 0.3))


def certain(n: int = ROWS, seed: int = 0, gone: int = 40, left: float = 0.01) -> FloatArray:
    """Return an entropy that falls from 1 to `left` by the index `gone`."""
    level = np.geomspace(1.0, left, gone)
    return heavy(np.random.default_rng(seed), np.concatenate((level, np.full(n - gone, left))), 0.05)


def coin(n: int = ROWS, seed: int = 0) -> Metrics:
    """Return the log of a DPO whose policy stays where its reference is."""
    margins = 0.02 * np.random.default_rng(seed).standard_t(3, (n, 16))
    return {
        **preferences(np.random.default_rng(seed), n, 0.0),
        "train/loss": np.log1p(np.exp(-margins)).mean(axis=1),
        "rewards/margins": margins.mean(axis=1),
        "rewards/accuracies": (margins > 0.0).mean(axis=1),
    }


def flat(n: int = ROWS, seed: int = 0, level: float = 0.2) -> FloatArray:
    return np.asarray(level + 0.05 * noise(np.random.default_rng([seed, 2]), n, "gauss", 0.0))


def gaps(
    n: int = ROWS, seed: int = 0, level: float = 0.012, since: int | None = None, times: float = 20.0
) -> FloatArray:
    """Return a difference of log-probability around `level`, and around `times` that from the index `since` on."""
    size = np.full(n, level)
    if since is not None:
        size[since:] *= times
    return heavy(np.random.default_rng([seed, 3]), size, 0.2)


POLICY_PLANTED: Mapping[str, Planted] = {
    "policy_kl": Planted(
        run_of({"kl": divergence(blown=200), "train/reward": rewards(lost=200)}), at(200), Severity.WARNING, at(10)
    ),
    "entropy_collapse": Planted(
        run_of({"entropy": certain(), "train/reward": flat()}), at(25), Severity.WARNING, slack=at(10)
    ),
    "zero_std_groups": Planted(
        run_of({"frac_reward_zero_std": np.ones(ROWS), "train/reward": np.zeros(ROWS)}), at(0), Severity.WARNING
    ),
    "preference_margin": Planted(run_of(coin()), at(ROWS // 4), Severity.WARNING),
    "rollout_mismatch": Planted(
        run_of({"train/rollout_logprob_difference": gaps(since=200), "train/reward": rewards()}),
        at(200),
        Severity.WARNING,
        at(10),
    ),
    "policy_ratio": Planted(
        run_of({"train/clip_fraction": gaps(level=0.03, since=250), "train/reward": rewards(lost=250)}),
        at(250),
        Severity.WARNING,
        at(10),
    ),
    "reward_hacking": Planted(
        run_of(
            {
                "completions/mean_length": np.geomspace(200.0, 900.0, ROWS),
                "eval/reward": flat(20) - np.linspace(0.0, 0.2, 20),
                "train/reward": rewards(gain=2.0),
            }
        ),
        at(ROWS // 5),
        Severity.INFO,
        at(10),
    ),
}
