"""Planted faults of policies and of preference optimisation; same contract as ``bench/planted.py``."""

from __future__ import annotations

import numpy as np
from planting import Fault, Planted
from policies import BATCH, GROUP, FloatArray, Task, heavy, preferences, run_of, trained
from synthetic import noise


def _length(rng: np.random.Generator) -> int:
    return int(np.exp(rng.uniform(np.log(80), np.log(1500))))


def _learns(rng: np.random.Generator, n: int) -> dict[str, FloatArray]:
    """Return a policy that learns, as its trainer would log it."""
    log = trained(rng, Task(n, 10.0 ** float(rng.uniform(-1.3, 0.0)), float(rng.uniform(0.0, 0.6)), 0.02))
    return {**log, "kl": heavy(rng, log["kl"], float(rng.choice([0.1, 0.3])))}


def kl_blow_up(rng: np.random.Generator) -> Planted:
    """Let the divergence grow by e every few rows to 20 to 10,000 times its level; the reward falls to a part of it."""
    n = _length(rng)
    log = _learns(rng, n)
    at = int(n * rng.uniform(0.35, 0.8))
    k = np.arange(n - at)
    final = max(float(np.median(log["kl"][at - 10 : at])), 0.5) * 10.0 ** float(rng.uniform(1.3, 4.0))
    log["kl"][at:] = np.minimum(
        log["kl"][at:] * np.exp(np.minimum((k + 1) / rng.uniform(0.3, 0.02 * n + 0.5), 100.0)), final
    )
    log["kl"][at:] = heavy(rng, log["kl"][at:], 0.3)
    had = float(np.mean(log["reward"][at - n // 20 - 1 : at]))
    gets = had * np.maximum(rng.uniform(0.0, 0.9), np.exp(-k / (0.05 * n)))
    log["reward"][at:] = rng.binomial(BATCH * GROUP, gets) / (BATCH * GROUP)
    return run_of(log), {"policy_kl"}, at + 1, n


def update_blow_up(rng: np.random.Generator) -> Planted:
    """Let the divergence between updates step up to 0.3 to 30 nat, from 0.003 to 0.02; the return does not rise."""
    n = _length(rng)
    at = int(n * rng.uniform(0.35, 0.8))
    kl = np.full(n, 10.0 ** float(rng.uniform(-2.5, -1.7)))
    kl[at:] = 10.0 ** float(rng.uniform(-0.5, 1.5))
    gain = 1.0 - np.exp(-np.linspace(0.0, 1.0, n) * float(rng.uniform(2, 8)))
    gain[at:] = gain[at] * float(rng.uniform(0.1, 0.9))
    reward = 200.0 * (gain + float(rng.uniform(0.02, 0.1)) * noise(rng, n, "t3", 0.3))
    log = {"rollout/ep_rew_mean": reward, "train/approx_kl": heavy(rng, kl, float(rng.choice([0.1, 0.3, 0.6])))}
    return run_of(log), {"policy_kl"}, at + 1, n


def kl_negative(rng: np.random.Generator) -> Planted:
    """Give the divergence a mean of -1 to -50 nat with noise as large as half of it."""
    n = _length(rng)
    at = int(n * rng.uniform(0.0, 0.6))
    level = -(10.0 ** float(rng.uniform(0.0, 1.7)))
    kl = 0.3 + np.where(np.arange(n) < at, 0.0, level - 0.3) + 0.5 * abs(level) * noise(rng, n, "t3", 0.3)
    reward = float(rng.uniform(-1, 1)) + 0.1 * noise(rng, n, "t3", 0.3)
    return run_of({"objective/kl": kl, "objective/rlhf_reward": reward}), {"policy_kl"}, at + 1, n


def certain_too_soon(rng: np.random.Generator) -> Planted:
    """Train with an entropy term of the wrong sign, so large that nothing that is rewarded is found first."""
    n = int(rng.integers(200, 1200))
    task = Task(n, float(rng.uniform(0.5, 2.0)), float(rng.uniform(0.0, 0.4)), -float(rng.uniform(2.0, 6.0)), answers=1)
    return run_of(trained(rng, task)), {"entropy_collapse"}, int(0.05 * n), n


def never_rewarded(rng: np.random.Generator) -> Planted:
    """Train on prompts of which at most one in twenty-four can be solved at all."""
    n = _length(rng)
    task = Task(n, float(rng.uniform(0.05, 0.5)), float(rng.uniform(0.96, 1.0)), 0.02, answers=1)
    return run_of(trained(rng, task)), {"zero_std_groups"}, 1, n


def coin(rng: np.random.Generator) -> Planted:
    """Leave the policy where its reference is: margins of rounding errors only."""
    n = int(np.exp(rng.uniform(np.log(210), np.log(1500))))
    log = preferences(rng, n, 0.0)
    margins = 0.02 * rng.standard_t(3, (n, 16)) / np.sqrt(3.0)
    log["train/loss"] = np.log1p(np.exp(-margins)).mean(axis=1)
    log["rewards/margins"], log["rewards/accuracies"] = margins.mean(axis=1), (margins > 0.0).mean(axis=1)
    return run_of(log), {"preference_margin"}, n // 4, n


def other_temperature(rng: np.random.Generator) -> Planted:
    """Sample at a temperature that the trainer does not know of."""
    n = _length(rng)
    warmth = float(rng.uniform(0.4, 0.8)) if rng.random() < 0.5 else float(rng.uniform(1.25, 2.0))
    task = Task(n, 10.0 ** float(rng.uniform(-1.3, 0.0)), float(rng.uniform(0.0, 0.6)), 0.02, warmth=warmth)
    return run_of(trained(rng, task)), {"rollout_mismatch"}, 1, n


def stale_sampler(rng: np.random.Generator) -> Planted:
    """Stop the weights of the sampler while the policy goes on learning."""
    n = _length(rng)
    at = int(n * rng.uniform(0.0, 0.4))
    task = Task(n, 10.0 ** float(rng.uniform(-1.0, 0.0)), float(rng.uniform(0.0, 0.4)), 0.02, stale=at)
    return run_of(trained(rng, task)), {"rollout_mismatch", "policy_ratio", "reward_collapse"}, at, n


def drift_at_rest(rng: np.random.Generator) -> Planted:
    """Let the difference grow twofold to twentyfold at a learning rate of 0."""
    n = _length(rng)
    grown = np.linspace(1.0, float(rng.uniform(2.0, 20.0)), n)
    gap = heavy(rng, 10.0 ** float(rng.uniform(-2.5, -1.6)) * grown, float(rng.choice([0.1, 0.2, 0.4])))
    reward = float(rng.uniform(0, 1)) + 0.1 * noise(rng, n, "t3", 0.3)
    log = {"debug/vllm_vs_local_logprob_diff_mean": gap, "reward": reward, "learning_rate": np.zeros(n)}
    return run_of(log), {"rollout_mismatch"}, 1, n


def too_much_clipped(rng: np.random.Generator) -> Planted:
    """Let the clip fraction step up to 0.35 to 0.9 as the return falls to a part of what it was."""
    n = _length(rng)
    at = int(n * rng.uniform(0.3, 0.8))
    clipped = np.full(n, float(rng.uniform(0.02, 0.2)))
    clipped[at:] = float(rng.uniform(0.35, 0.9))
    gain = 1.0 - np.exp(-np.linspace(0.0, 1.0, n) * float(rng.uniform(2, 8)))
    gain[at:] = gain[at] * float(rng.uniform(0.1, 0.8))
    reward = 200.0 * (gain + float(rng.uniform(0.02, 0.1)) * noise(rng, n, "t3", 0.3))
    log = {"rollout/ep_rew_mean": reward, "train/clip_fraction": np.minimum(heavy(rng, clipped, 0.15), 1.0)}
    return run_of(log), {"policy_ratio"}, at + 1, n


def other_forward(rng: np.random.Generator) -> Planted:
    """Take the ratio of two forwards that differ, from the first step on: nothing is learned."""
    n = _length(rng)
    level = float(rng.uniform(0.05, 0.45)) if rng.random() < 0.5 else float(rng.uniform(2.2, 20.0))
    reward = float(rng.uniform(0, 1)) + float(rng.uniform(0.02, 0.2)) * noise(rng, n, "t3", 0.3)
    return run_of({"train/probs_ratio": heavy(rng, np.full(n, level), 0.1), "reward": reward}), {"policy_ratio"}, 1, n


POLICY_FAULTS: tuple[Fault, ...] = (
    kl_blow_up, update_blow_up, kl_negative, certain_too_soon, never_rewarded, coin, other_temperature,
    stale_sampler, drift_at_rest, too_much_clipped, other_forward,
)  # fmt: skip
