"""What people do on purpose, and what real healthy logs look like: no detector raises its voice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from synthetic import noise

from trainscope.core.finding import Severity
from trainscope.core.run import Run
from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge

from .runs import ROWS, cosine, falling, norms, run_of

T = np.linspace(0.0, 1.0, ROWS)
K = np.arange(ROWS)


def step_decay(rng: np.random.Generator) -> Run:
    """Tenths of the learning rate at a half and three quarters; the loss falls at each drop."""
    rate = 0.1 * np.where(T < 0.5, 1.0, np.where(T < 0.75, 0.1, 0.01))
    loss = falling(seed=int(rng.integers(1e6)), sd=0.03) * np.where(T < 0.5, 1.0, np.where(T < 0.75, 0.7, 0.62))
    return run_of({"train/loss": loss, "learning_rate": rate})


def cosine_restarts(rng: np.random.Generator) -> Run:
    """SGDR: the loss rises a little after each restart and comes back."""
    phase = (T * 4.0) % 1.0
    rate = 3e-4 * np.minimum(1.0, (T + 1e-3) / 0.02) * (0.01 + 0.495 * (1.0 + np.cos(np.pi * phase)))
    loss = falling(seed=int(rng.integers(1e6))) * (1.0 + 0.01 * np.cos(np.pi * phase))
    return run_of({"train/loss": loss, "learning_rate": rate})


def warmup_stable_decay(rng: np.random.Generator) -> Run:
    rate = 3e-4 * np.minimum(1.0, (T + 1e-3) / 0.03) * np.minimum(1.0, (1.0 - T) / 0.2)
    loss = falling(seed=int(rng.integers(1e6))) * np.where(T < 0.8, 1.0, 1.0 - 0.3 * (T - 0.8))
    return run_of({"train/loss": loss, "learning_rate": rate})


def mixup(rng: np.random.Generator) -> Run:
    """Half of the batches are mixed and lie in a band of their own."""
    band = np.where(rng.random(ROWS) < 0.5, 1.0, 1.5)
    return run_of({"train/loss": falling(seed=int(rng.integers(1e6)), sd=0.04) * band})


def memorised_epochs(rng: np.random.Generator) -> Run:
    """Several epochs over little data: the loss steps down at each epoch."""
    return run_of({"train/loss": falling(seed=int(rng.integers(1e6)), sd=0.04) * 0.85 ** (K // 100)})


def compilation_and_checkpoints(rng: np.random.Generator) -> Run:
    """The first steps compile, and every fiftieth writes a checkpoint or evaluates."""
    seconds = 0.5 * (1.0 + 0.05 * np.abs(rng.normal(size=ROWS)))
    seconds[:6] *= 60.0
    seconds[49::50] *= 12.0
    return run_of({"train/loss": falling(), "train/step_time": seconds, "train/tokens_per_second": 4096 / seconds})


def group_relative_policy(rng: np.random.Generator) -> Run:
    """GRPO: the loss is 0 by construction for most batches, and grows with the KL term."""
    loss = np.where(rng.random(ROWS) < 0.7, 0.0, 1e-3 * T * rng.random(ROWS))
    return run_of({"train/loss": loss, "train/reward": T + 0.1 * rng.normal(size=ROWS), "train/grad_norm": norms()})


def returns_that_grow(rng: np.random.Generator) -> Run:
    """DDPG: the critic's loss grows a hundred times because the returns do."""
    critic = np.exp(np.linspace(0.0, np.log(100.0), ROWS) + 0.3 * rng.normal(size=ROWS))
    return run_of({"critic_loss": critic, "rollout/ep_rew_mean": 100.0 * T, "actor_loss": -10.0 * T})


def adversaries(rng: np.random.Generator) -> Run:
    """GAN: the generator's loss rises as the discriminator gets better, and both wander."""
    walk = 0.02 * np.cumsum(rng.normal(size=(2, ROWS)), axis=1)
    g = np.abs(1.2 + 0.5 * T + walk[0] + 0.2 * rng.normal(size=ROWS))
    d = np.abs(0.7 - 0.2 * T + 0.3 * walk[1] + 0.1 * rng.normal(size=ROWS))
    return run_of({"loss_G": g, "loss_D": d})


def heavy_tails(rng: np.random.Generator) -> Run:
    return run_of({"train/loss": falling(seed=int(rng.integers(1e6)), sd=0.03, kind="t3")})


def autocorrelated(rng: np.random.Generator) -> Run:
    return run_of({"train/loss": falling(seed=int(rng.integers(1e6)), sd=0.05, phi=0.6)})


def small_batches(rng: np.random.Generator) -> Run:
    """Batches of one: noise of a third of the level, an evaluation that is smooth."""
    loss = falling(seed=int(rng.integers(1e6)), sd=0.25, kind="lognormal")
    return run_of({"train/loss": loss, "eval/loss": 2.0 + np.exp(-np.arange(20) / 4.0)})


def a_gap_that_stays(rng: np.random.Generator) -> Run:
    """The held-out loss lies well above the training loss, and stays there."""
    held_out = 3.2 + 1.5 * np.exp(-np.arange(40) / 5.0)
    held_out = held_out * (1.0 + 0.01 * rng.normal(size=40))
    return run_of({"train/loss": falling(), "eval/loss": held_out})


def fine_tuning(rng: np.random.Generator) -> Run:
    """Starts low, gains a little, at a small learning rate without a warm-up."""
    loss = (1.1 - 0.15 * T) * (1.0 + 0.05 * rng.normal(size=ROWS))
    return run_of({"train/loss": loss, "learning_rate": 2e-5 * (1.0 - T)})


def losses_below_zero(rng: np.random.Generator) -> Run:
    """A log-likelihood of densities crosses zero and goes on falling."""
    return run_of({"train/loss": 3.0 * np.exp(-6.0 * T) - 1.5 + 0.05 * rng.normal(size=ROWS)})


def rounded_losses(rng: np.random.Generator) -> Run:
    """Hugging Face rounds to four digits; late losses look constant."""
    return run_of({"train/loss": np.round(0.5 * np.exp(-7.0 * T) * (1.0 + 0.05 * rng.normal(size=ROWS)), 2) + 0.01})


def single_norm_peaks(rng: np.random.Generator) -> Run:
    """One batch of ten times the usual gradient: clipped, harmless."""
    norm = norms()
    norm[[90, 260]] *= 10.0
    return run_of({"train/loss": falling(), "train/grad_norm": norm, "learning_rate": cosine()})


PATTERNS: tuple[Callable[[np.random.Generator], Run], ...] = (
    step_decay, cosine_restarts, warmup_stable_decay, mixup, memorised_epochs, compilation_and_checkpoints,
    group_relative_policy, returns_that_grow, adversaries, heavy_tails, autocorrelated, small_batches,
    a_gap_that_stays, fine_tuning, losses_below_zero, rounded_losses, single_norm_peaks,
)  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.__name__)
def test_nobody_is_alarmed(pattern):
    chosen = configure(Settings())
    for seed in range(5):
        found = judge(pattern(np.random.default_rng(seed)), chosen).findings
        assert [f.message for f in found if f.severity >= Severity.WARNING] == [], seed


def test_autocorrelated_noise_has_the_autocorrelation_that_these_tests_claim():
    """The generator is a measuring instrument too."""
    e = noise(np.random.default_rng(0), 20_000, "gauss", 0.6)
    assert np.corrcoef(e[1:], e[:-1])[0, 1] == pytest.approx(0.6, abs=0.02)
    assert np.std(e) == pytest.approx(1.0, abs=0.03)
