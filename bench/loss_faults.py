"""Planted faults that show in the loss, in training or in evaluation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from planting import LOSS_EVENTS, Planted, base, put, sigma, span
from synthetic import NOISES, noise, with_loss

from trainscope.core.run import Series


def spike_point(rng: np.random.Generator) -> Planted:
    run = base(rng, low=800)
    x = run.series["train/loss"].value.copy()
    at = int(rng.integers(len(x) // 4, len(x) - 20))
    x[at] += max(rng.uniform(12, 30) * sigma(run, at), 0.06 * abs(x[at]))
    return with_loss(run, x), LOSS_EVENTS, *span(run, at, at)


def spike_decay(rng: np.random.Generator) -> Planted:
    run = base(rng, NOISES)
    x = run.series["train/loss"].value.copy()
    at = int(rng.integers(len(x) // 5, len(x) - 120))
    k = np.arange(len(x) - at)
    x[at:] += x[at] * rng.uniform(0.8, 5) * np.exp(-k / rng.uniform(2, 20))
    return with_loss(run, x), LOSS_EVENTS, *span(run, at, at + 40)


def spike_early(rng: np.random.Generator) -> Planted:
    run = base(rng)
    x = run.series["train/loss"].value.copy()
    at = int(rng.integers(12, 30))
    x[at : at + int(rng.integers(1, 4))] = x[:5].max() * rng.uniform(1.8, 4)
    return with_loss(run, x), LOSS_EVENTS, *span(run, at, at + 3)


def slow_divergence(rng: np.random.Generator) -> Planted:
    run = base(rng, NOISES)
    x = run.series["train/loss"].value.copy()
    at = int(len(x) * rng.uniform(0.4, 0.75))
    ramp = np.linspace(0, 1, len(x) - at) ** float(rng.uniform(0.7, 2))
    x[at:] *= 1 + rng.uniform(0.3, 1.5) * ramp
    return with_loss(run, x), LOSS_EVENTS, *span(run, at, len(x))


def blow_up(rng: np.random.Generator) -> Planted:
    run = base(rng, NOISES)
    x = run.series["train/loss"].value.copy()
    tail = int(rng.integers(4, 40))
    x[-tail:] *= np.exp(np.linspace(0.3, rng.uniform(2, 20), tail))
    return with_loss(run, x), LOSS_EVENTS, *span(run, len(x) - tail, len(x))


def level_shift(rng: np.random.Generator) -> Planted:
    run = base(rng, NOISES)
    x = run.series["train/loss"].value.copy()
    at = int(len(x) * rng.uniform(0.3, 0.8))
    x[at:] *= 1 + rng.uniform(0.25, 1.0)
    return with_loss(run, x), LOSS_EVENTS, *span(run, at, at + 60)


def flat(rng: np.random.Generator) -> Planted:
    run = base(rng)
    n = len(run.series["train/loss"])
    x = float(rng.uniform(0.1, 11)) * (1 + rng.choice([0, 0.01, 0.05]) * noise(rng, n, "gauss", 0))
    held = run.series["eval/loss"]
    run = put(run, "eval/loss", np.full(len(held), x.mean()) * (1 + 0.004 * rng.normal(size=len(held))))
    return with_loss(run, x), {"plateau", "eval_noise"}, *span(run, 0, n)


def stuck(rng: np.random.Generator) -> Planted:
    run = base(rng, low=600)
    n = len(run.series["train/loss"])
    a, b = int(n * rng.uniform(0.05, 0.2)), int(n * rng.uniform(0.5, 0.7))
    t = np.arange(n)
    high, low = rng.uniform(3, 8), rng.uniform(0.4, 0.7)
    x = high * (1 + 0.8 * np.exp(-t / (a / 4))) * np.where(t < b, 1, low + (1 - low) * np.exp(-(t - b) / (0.05 * n)))
    rate = run.series["learning_rate"]
    run = put(run, "learning_rate", np.full(n, rate.value.max()))
    return with_loss(run, x * (1 + 0.01 * rng.normal(size=n))), {"plateau"}, *span(run, a, b)


def overfit(rng: np.random.Generator) -> Planted:
    run = base(rng)
    held = run.series["eval/loss"]
    n = int(rng.integers(9, 60))
    step = np.unique(np.linspace(1, run.series["train/loss"].step[-1], n).astype(int))
    best = int(len(step) * rng.uniform(0.25, 0.6))
    level = float(held.value.min())
    k = np.arange(len(step))
    x = level * (
        1 + 0.8 * np.exp(-k / (best / 4 + 0.5)) + rng.uniform(0.2, 0.9) * np.maximum(0, k - best) / (len(step) - best)
    )
    x *= 1 + rng.uniform(0.001, 0.02) * rng.normal(size=len(step))
    run = replace(run, series={**run.series, "eval/loss": Series("eval/loss", step, x)})
    return run, {"overfitting"}, int(step[best]), int(step[-1])


def leak(rng: np.random.Generator) -> Planted:
    run = base(rng)
    n = len(run.series["train/loss"])
    x = rng.uniform(0.0003, 0.005) + rng.uniform(0.8, 10) * np.exp(-np.linspace(0, 1, n) * rng.uniform(150, 400))
    held = run.series["eval/loss"]
    run = put(run, "eval/loss", x[-1] * (1 + 0.01 * rng.normal(size=len(held))))
    return with_loss(run, x * (1 + 0.03 * rng.normal(size=n))), {"loss_floor"}, *span(run, 0, n // 8)


def oscillating(rng: np.random.Generator) -> Planted:
    run = base(rng, low=500)
    n = len(run.series["train/loss"])
    t = np.arange(n)
    x = rng.uniform(2, 5) * (1 + np.exp(-t / (n / 40))) * (1 + rng.uniform(0.18, 0.4) * np.sin(t / rng.uniform(2, 12)))
    return (
        with_loss(run, x * (1 + 0.04 * rng.normal(size=n))),
        {"oscillation", "plateau", "spikes"},
        *span(run, n // 4, n),
    )
