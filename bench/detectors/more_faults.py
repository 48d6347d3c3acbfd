"""Planted faults of the detectors that ``bench/planted.py`` has none for; same contract as there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from planting import LOSS_EVENTS, Fault, Planted, base, sigma, span
from policy_faults import POLICY_FAULTS
from synthetic import noise, with_loss

from trainscope.core.run import Run, Series


def unrecovered(rng: np.random.Generator) -> Planted:
    """Plant a jump to two to five times the level, of which a twelfth to a quarter stays."""
    run = base(rng, low=600)
    x = run.series["train/loss"].value.copy()
    at = int(len(x) * rng.uniform(0.3, 0.7))
    k = np.arange(len(x) - at)
    stays = rng.uniform(0.12, 0.3)
    x[at:] *= 1.0 + stays + (rng.uniform(1.0, 4.0) - stays) * np.exp(-k / rng.uniform(3, 20))
    return with_loss(run, x), LOSS_EVENTS, *span(run, at, at + 60)


def gone_to_zero(rng: np.random.Generator) -> Planted:
    """Make the loss exactly 0 from one step on."""
    run = base(rng)
    x = run.series["train/loss"].value.copy()
    at = int(len(x) * rng.uniform(0.2, 0.9))
    x[at:] = 0.0
    return with_loss(run, x), {"zero_loss"}, *span(run, at, len(x))


def noisy_evaluation(rng: np.random.Generator) -> Planted:
    """Plant a held-out loss whose noise is a quarter to a half of its level."""
    run = base(rng)
    n = int(rng.integers(12, 80))
    step = np.unique(np.linspace(1, run.series["train/loss"].step[-1], n).astype(int))
    level = float(run.series["eval/loss"].value.min()) * (1.0 + 0.3 * np.exp(-np.arange(len(step)) / 3.0))
    value = level * (1.0 + rng.uniform(0.25, 0.5) * np.clip(rng.normal(size=len(step)), -1.8, 1.8))
    run = replace(run, series={**run.series, "eval/loss": Series("eval/loss", step, value)})
    return run, {"eval_noise"}, int(step[0]), int(step[-1])


def missing_rows(rng: np.random.Generator) -> Planted:
    """Leave out a tenth to a third of the rows, in one stretch."""
    run = base(rng)
    n = len(run.series["train/loss"])
    a = int(n * rng.uniform(0.2, 0.6))
    b = a + int(n * rng.uniform(0.1, 0.33))
    low, high = span(run, a, b)
    kept = {}
    for name, s in run.series.items():
        keep = (s.step < low) | (s.step >= high)
        kept[name] = Series(name, s.step[keep], s.value[keep])
    return replace(run, series=kept), {"step_order"}, low, high


def collapsed_policy(rng: np.random.Generator) -> Planted:
    """Plant a reward that is gained and then lost for good."""
    n = int(rng.integers(300, 3000))
    t = np.linspace(0.0, 1.0, n)
    at = int(n * rng.uniform(0.4, 0.7))
    gain = 1.0 - np.exp(-t * rng.uniform(5, 12))
    gain[at:] = gain[at] * np.maximum(1.0 - rng.uniform(0.85, 1.0), np.exp(-(t[at:] - t[at]) * rng.uniform(20, 100)))
    reward = rng.uniform(-5, 5) + rng.uniform(1, 100) * (gain + rng.uniform(0.02, 0.1) * noise(rng, n, "gauss", 0.3))
    series = {"train/reward": Series("train/reward", np.arange(1, n + 1), reward)}
    return Run("synthetic", "synthetic", "synthetic", series), {"reward_collapse"}, at, n


def lost_game(rng: np.random.Generator) -> Planted:
    """Plant a discriminator whose loss falls to nothing while the generator's climbs."""
    n = int(rng.integers(400, 3000))
    t = np.arange(n)
    at = int(n * rng.uniform(0.2, 0.5))
    first = rng.uniform(0.5, 1.4)
    ours = first * np.where(t < at, 1.0, np.maximum(rng.uniform(1e-4, 0.01), np.exp(-(t - at) / (0.03 * n))))
    theirs = rng.uniform(0.7, 2.0) * (1.0 + rng.uniform(1.0, 5.0) * np.clip((t - at) / (0.2 * n), 0.0, 1.0))
    step = np.arange(1, n + 1)
    series = {
        "d_loss": Series("d_loss", step, ours * np.exp(0.15 * rng.normal(size=n))),
        "g_loss": Series("g_loss", step, theirs * np.exp(0.15 * rng.normal(size=n))),
    }
    return Run("synthetic", "synthetic", "synthetic", series), {"gan_imbalance"}, at, n


def grown_noise(rng: np.random.Generator) -> Planted:
    """Make the noise of the loss three to eight times as large from one step on, as a smaller batch does."""
    run = base(rng, low=500)
    x = run.series["train/loss"].value.copy()
    at = int(rng.integers(len(x) // 2, len(x) - 150))
    size = max(3.0 * sigma(run, at), 0.012 * abs(float(x[at])))
    x[at:] += rng.uniform(1.0, 2.6) * size * noise(rng, len(x) - at, "gauss", 0.0)
    return with_loss(run, x), {"oscillation"}, *span(run, at, len(x))


def same_order(rng: np.random.Generator) -> Planted:
    """Give every epoch the same batches in the same order: one pattern of 0.7 to 3 times the noise, 5 % at least."""
    run = base(rng, low=600)
    loss = run.series["train/loss"]
    count = int(rng.integers(6, 13))
    place = count * np.arange(len(loss)) / len(loss)
    batch = ((place % 1.0) * (len(loss) // count)).astype(int)
    level = float(np.median(loss.value))
    size = rng.uniform(0.7, 3.0) * max(sigma(run, len(loss) // 2) / level, 0.05)
    x = loss.value * (1.0 + size * noise(rng, int(batch.max()) + 1, "gauss", 0.3)[batch])
    counter = np.floor(place) if rng.random() < 0.5 else np.round(place, 2)
    run = replace(run, series={**run.series, "epoch": Series("epoch", loss.step, counter)})
    return with_loss(run, x), {"epoch_order", "oscillation"}, *span(run, 0, len(x))


def stairs(rng: np.random.Generator) -> Planted:
    """Let the loss fall by 8 to 30 % where each of 3 to 6 epochs begins."""
    run = base(rng, low=300)
    loss, rate = run.series["train/loss"], run.series["learning_rate"]
    count = int(rng.integers(3, 7))
    place = count * np.arange(len(loss)) / len(loss)
    level = float(rng.uniform(1.0, 3.0)) * (1.0 - rng.uniform(0.08, 0.3)) ** np.floor(place)
    x = level * (1.0 + rng.uniform(0.005, 0.04) * noise(rng, len(loss), "gauss", 0.3))
    smooth = Series(
        rate.name,
        rate.step,
        rate.value.max() * np.minimum(np.linspace(1.0, 0.01, len(loss)), np.linspace(0.01, 30.0, len(loss))),
    )
    epoch = Series("epoch", loss.step, np.round(place, 2))
    run = replace(run, series={**run.series, "epoch": epoch, "learning_rate": smooth})
    return with_loss(run, x), {"epoch_steps"}, *span(run, len(x) // count, len(x))


def waiting(rng: np.random.Generator) -> Planted:
    """Log a loading time of 25 to 90 % of the step."""
    run = base(rng)
    step = run.series["train/step_time"]
    wait = step.value * np.clip(rng.uniform(0.25, 0.9) + 0.05 * rng.normal(size=len(step)), 0.0, 1.0)
    run = replace(run, series={**run.series, "data_time": Series("data_time", step.step, wait)})
    return run, {"data_wait"}, *span(run, 0, len(step))


def leaking(rng: np.random.Generator) -> Planted:
    """Let memory grow by 30 to 300 % to the end, from the start or from up to a third of the run on."""
    run = base(rng)
    step = run.series["train/loss"].step
    t = np.linspace(0.0, 1.0, len(step))
    at = rng.uniform(0.0, 0.33)
    grown = 1.0 + rng.uniform(0.3, 3.0) * np.clip((t - at) / (1.0 - at), 0.0, None)
    value = rng.uniform(800, 80_000) * grown * (1.0 + rng.uniform(0.0, 0.002) * rng.normal(size=len(step)))
    run = replace(run, series={**run.series, "memory_allocated": Series("memory_allocated", step, value)})
    return run, {"memory_growth"}, *span(run, int(at * len(step)), len(step))


MORE_FAULTS: tuple[Fault, ...] = (
    unrecovered,
    gone_to_zero,
    noisy_evaluation,
    missing_rows,
    collapsed_policy,
    lost_game,
    *POLICY_FAULTS,
    grown_noise,
    same_order,
    stairs,
    waiting,
    leaking,
)
