"""Healthy logs of reinforcement learning and preference optimisation, with known noise. Truth for the benches.

Half of the policies are really trained: a table of softmax policies that learns from groups of samples, as GRPO does,
so that entropy, divergence and dead groups go with the reward as they must. The other half follow laws, so that they
have the units and names that other trainers log.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from synthetic import noise

from trainscope.core.metrics import canonical_names
from trainscope.core.run import Run, Series

FloatArray = NDArray[np.float64]
LN2 = float(np.log(2.0))
PROMPTS, ACTIONS, BATCH, GROUP = 48, 12, 12, 8
TRAINED = (
    "kl", "entropy", "reward", "reward_std", "frac_reward_zero_std", "sampling/sampling_logp_difference/mean",
    "sampling/importance_sampling_ratio/mean", "clip_ratio/region_mean",
)  # fmt: skip
"""What the table of policies logs, under TRL's names."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a table of policies learns."""

    rows: int
    rate: float
    hard: float
    """Share of prompts on which no action is ever rewarded."""
    entropy: float = 0.0
    """Weight of the entropy; below 0 it drives the policy to certainty."""
    answers: int = 2
    """Actions that are rewarded on each other prompt."""
    apart: float = 0.01
    """Noise of the sampler's logits against the trainer's, in nat."""
    warmth: float = 1.0
    """Temperature of the sampler that the trainer does not know of."""
    stale: int = 1 << 30
    """Row from which on the sampler gets no new weights."""


def run_of(series: dict[str, FloatArray]) -> Run:
    """Return a run of these metrics under the names that a reader gives them."""
    rows = max(map(len, series.values()))
    names = canonical_names(tuple(series))
    evenly = {names[raw]: (np.linspace(1, rows, len(v)).astype(np.int64), v) for raw, v in series.items()}
    return Run("synthetic", "synthetic", "synthetic", {name: Series(name, *points) for name, points in evenly.items()})


def heavy(rng: np.random.Generator, value: FloatArray, spread: float) -> FloatArray:
    """Return `value` with multiplied Student-t(3) noise of autocorrelation 0.3, whose logarithm has this deviation."""
    return np.asarray(value * np.exp(spread * np.clip(noise(rng, len(value), "t3", 0.3), -12.0, 12.0)))


def _softmax(logits: FloatArray) -> FloatArray:
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def trained(rng: np.random.Generator, task: Task) -> dict[str, FloatArray]:
    """Train a table of policies by advantages relative to a group; return what TRL would log."""
    logits = rng.normal(size=(PROMPTS, ACTIONS))
    reference = _softmax(logits)
    pays = np.zeros((PROMPTS, ACTIONS))
    pays[np.arange(PROMPTS)[:, None], rng.integers(ACTIONS, size=(PROMPTS, task.answers))] = 1.0
    pays[rng.permutation(PROMPTS)[: int(task.hard * PROMPTS)]] = 0.0
    log = np.zeros((task.rows, len(TRAINED)))
    (engine,) = rng.spawn(1)
    served = logits
    for k in range(task.rows):
        at = rng.permutation(PROMPTS)[:BATCH]
        p = _softmax(logits[at])
        served = logits.copy() if k < task.stale else served
        q = _softmax((served[at] + task.apart * engine.normal(size=p.shape)) / task.warmth)
        drawn = (q.cumsum(axis=1)[:, None, :] < rng.random((BATCH, GROUP, 1))).sum(axis=2).clip(max=ACTIONS - 1)
        reward = np.take_along_axis(pays[at], drawn, axis=1)
        spread = reward.std(axis=1, ddof=1)
        advantage = (reward - reward.mean(axis=1, keepdims=True)) / (spread[:, None] + 1e-4)
        push = (np.eye(ACTIONS)[drawn] * advantage[:, :, None]).mean(axis=1) - p * advantage.mean(axis=1)[:, None]
        surprise = np.log(p + 1e-12)
        entropy = -(p * surprise).sum(axis=1)
        push -= task.entropy * p * (surprise + entropy[:, None])
        logits[at] += task.rate * push
        divergence = (p * (surprise - np.log(reference[at]))).sum(axis=1).mean()
        old, sampled, new = (np.take_along_axis(of, drawn, axis=1) for of in (p, q, _softmax(logits[at])))
        log[k] = (
            divergence, entropy.mean(), reward.mean(), spread.mean(), (spread == 0.0).mean(),
            np.abs(np.log(old / sampled)).mean(), (old / sampled).mean(), (np.abs(new / old - 1.0) > 0.2).mean(),
        )  # fmt: skip
    return dict(zip(TRAINED, log.T, strict=True))


def _followed(rng: np.random.Generator, n: int) -> dict[str, FloatArray]:
    """Return a healthy policy by laws: a divergence that is a power of time, an entropy that pays for the reward."""
    t = np.linspace(0.0, 1.0, n)
    spread = float(rng.choice([0.1, 0.3, 0.6]))
    learned = 1.0 - np.exp(-t * float(rng.uniform(1.0, 8.0)))
    gain = float(rng.choice([0.0, 0.02, 0.3, 1.0]))
    reward = float(rng.uniform(-1, 1)) + gain * learned + float(rng.uniform(0.02, 0.2)) * noise(rng, n, "t3", 0.3)
    far = 10.0 ** float(rng.uniform(-3, 1.7)) * (t + 1e-3) ** float(rng.uniform(0.3, 2.0))
    if rng.random() < 0.3:  # from where it begins to learn
        late = float(rng.uniform(0.05, 0.5))
        far *= 1.0 / (1.0 + np.exp(-(t - late) / 0.03)) + 1e-3
        reward += (0.5 + gain) / (1.0 + np.exp(-(t - late) / 0.03))
    keeps = float(rng.uniform(0.08, 1.5))
    entropy = 10.0 ** float(rng.uniform(-0.7, 1.0)) * (keeps + (1.0 - keeps) * np.exp(-t * float(rng.uniform(1, 12))))
    update = 10.0 ** float(rng.uniform(-3, -1.3)) * np.exp(float(rng.uniform(-1.0, 1.5)) * t)
    kind = int(rng.integers(4))
    (engine,) = rng.spawn(1)
    gap = heavy(engine, 10.0 ** float(engine.uniform(-2.5, -1.6)) * np.exp(float(engine.uniform(-0.7, 0.6)) * t), 0.2)
    clipped = np.minimum(heavy(engine, np.sqrt(update) * float(engine.uniform(0.1, 1.2)), 0.3), 1.0)
    length = heavy(engine, 300.0 * np.exp(float(engine.uniform(-0.5, 1.6)) * learned), 0.1)
    if kind == 0:
        return {
            "rollout/ep_rew_mean": 100.0 * reward,
            "train/approx_kl": heavy(rng, update, spread),
            "train/entropy_loss": -heavy(rng, entropy, 0.3 * spread),
            "train/clip_fraction": clipped,
        }
    if kind == 1:
        return {
            "critic/rewards/mean": reward,
            "actor/entropy": heavy(rng, entropy, 0.3 * spread),
            "actor/ppo_kl": 0.3 * update * noise(rng, n, "t3", 0.3),
            "actor/kl_loss": heavy(rng, 0.02 * far, spread),
            "training/rollout_probs_diff_mean": 0.4 * gap,
            "rollout_corr/kl": 0.5 * gap**2 + 0.1 * gap * noise(engine, n, "t3", 0.3),
            "actor/pg_clipfrac": 0.1 * clipped,
            "response_length/mean": length,
            "response_length/clip_ratio": np.clip(length / 3000.0 - 0.1, 0.0, 1.0),
        }
    if kind == 2:
        return {
            "objective/scores": reward,
            "objective/rlhf_reward": reward - 0.05 * far,
            "objective/kl": far + (0.1 + 0.1 * far) * noise(rng, n, "t3", 0.3),
            "policy/approxkl_avg": heavy(rng, update, spread),
            "policy/entropy_avg": heavy(rng, entropy, 0.3 * spread),
            "policy/clipfrac_avg": clipped,
            "val/ratio": 1.0 + 0.3 * clipped * noise(engine, n, "t3", 0.3),
        }
    dead = np.clip(float(rng.uniform(0.0, 0.7)) + 0.2 * learned + 0.1 * noise(rng, n, "t3", 0.3), 0.0, 1.0)
    return {
        "reward": reward,
        "reward_std": np.abs(0.3 * (1.0 - dead)),
        "frac_reward_zero_std": np.round(8 * dead) / 8,
        "kl": heavy(rng, 0.02 * far, spread),
        "entropy": heavy(rng, entropy, 0.3 * spread),
        "sampling/sampling_logp_difference/mean": gap,
        "completions/mean_length": length,
        "completions/clipped_ratio": np.clip(length / 3000.0 - 0.1, 0.0, 1.0),
        "eval_reward": (reward + 0.05 * noise(engine, n, "gauss", 0.0))[:: max(1, n // 20)],
    }


def preferences(rng: np.random.Generator, n: int, learns: float, pairs: int = 16) -> dict[str, FloatArray]:
    """Return a log of DPO: a batch of pairs a row, whose margins grow to `learns` in units of their spread.

    The spread grows too, as the policy leaves its reference whether it learns the preference or not.
    """
    t = np.linspace(0.0, 1.0, n)
    beta = float(rng.uniform(0.05, 0.5))
    moved = beta * 10.0 ** float(rng.uniform(-1.5, 0.8)) * (1.0 - np.exp(-t * float(rng.uniform(2, 10))))
    margins = moved[:, None] * (learns + rng.standard_t(3, (n, pairs)) / np.sqrt(3.0))
    fallen = float(rng.uniform(-0.25, 0.02)) * t
    chosen = -float(rng.uniform(50, 400)) * (1.0 - fallen) * (1.0 + 0.05 * noise(rng, n, "t3", 0.3))
    return {
        "train/loss": np.log1p(np.exp(-margins)).mean(axis=1),
        "rewards/accuracies": (margins > 0.0).mean(axis=1),
        "rewards/margins": margins.mean(axis=1),
        "rewards/chosen": beta * 100.0 * fallen + 0.1 * margins.mean(axis=1),
        "logps/chosen": chosen,
    }


def healthy_policy(rng: np.random.Generator) -> Run:
    """Return a healthy log of a policy or of preference optimisation, of any length and unit."""
    n = int(np.exp(rng.uniform(np.log(60), np.log(2000))))
    kind = rng.random()
    if kind < 0.2:
        return run_of(preferences(rng, n, float(rng.uniform(0.2, 2.0)), int(rng.choice([2, 8, 32]))))
    if kind < 0.6:
        task = Task(n, 10.0 ** float(rng.uniform(-1.3, 0.5)), float(rng.uniform(0.0, 0.6)), float(rng.uniform(0, 0.05)))
        (engine,) = rng.spawn(1)
        log = trained(rng, replace(task, apart=10.0 ** float(engine.uniform(-2.5, -1.6))))
        spread = float(rng.choice([0.05, 0.2, 0.5]))
        return run_of({**log, "kl": heavy(rng, log["kl"], spread), "entropy": heavy(rng, log["entropy"], 0.3 * spread)})
    return run_of(_followed(rng, n))
