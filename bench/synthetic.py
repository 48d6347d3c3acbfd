"""Healthy training curves with known noise, and faults planted into them. Truth for the benches.

Everything is drawn from a seeded generator: the same seed gives the same run on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trainscope.core.run import Run, Series

FloatArray = NDArray[np.float64]

NOISES = ("gauss", "t3", "laplace", "lognormal")
SCHEDULES = ("cosine", "linear", "wsd", "constant", "step", "restarts", "onecycle")


def noise(rng: np.random.Generator, n: int, kind: str, phi: float) -> FloatArray:
    """Return (n,) noise of zero mean and unit variance with lag-1 autocorrelation `phi`."""
    burn = 100
    if kind == "gauss":
        e = rng.normal(size=n + burn)
    elif kind == "t3":
        e = rng.standard_t(3, n + burn) / np.sqrt(3.0)
    elif kind == "laplace":
        e = rng.laplace(size=n + burn) / np.sqrt(2.0)
    else:
        e = np.exp(0.5 * rng.normal(size=n + burn))
        e = (e - np.exp(0.125)) / np.sqrt((np.exp(0.25) - 1.0) * np.exp(0.25))
    for i in range(1, n + burn) if phi else ():
        e[i] = phi * e[i - 1] + np.sqrt(1.0 - phi * phi) * e[i]
    return np.asarray(e[burn:])


def curve(rng: np.random.Generator, t: FloatArray) -> FloatArray:
    """Return a falling loss over t in 0..1: power laws, exponentials, a fine-tuning, a small scale."""
    shape = int(rng.integers(6))
    floor = float(rng.uniform(0.2, 3.0))
    if shape == 0:
        return floor + float(rng.uniform(1, 8)) * (1.0 + t * float(rng.uniform(20, 2000))) ** -float(
            rng.uniform(0.2, 0.7)
        )
    if shape == 1:
        return floor + 1.6 * (1 + 50 * t) ** -0.6 + float(rng.uniform(2, 8)) * np.exp(-t * float(rng.uniform(30, 120)))
    if shape == 2:
        return floor * (0.4 + float(rng.uniform(0.3, 3.0)) * np.exp(-t * float(rng.uniform(2, 8))))
    if shape == 3:
        return floor * (1.0 + float(rng.uniform(0.2, 0.8)) * np.exp(-t * float(rng.uniform(4, 40))))
    if shape == 4:
        return 1e-5 * (1.0 + 8.0 * np.exp(-t * float(rng.uniform(4, 20))))
    return floor + float(rng.uniform(10, 1e5)) * np.exp(-t * float(rng.uniform(50, 300))) + 1.5 * (1 + 40 * t) ** -0.5


def schedule(name: str, t: FloatArray) -> FloatArray:
    """Return a learning rate over t in 0..1, peak 1."""
    warm = np.minimum(1.0, (t + 1e-9) / 0.04)
    if name == "cosine":
        return warm * (0.1 + 0.45 * (1 + np.cos(np.pi * t)))
    if name == "linear":
        return warm * (1.0 - t)
    if name == "wsd":
        return warm * np.minimum(1.0, (1.0 - t) / 0.2)
    if name == "constant":
        return warm
    if name == "step":
        return warm * np.where(t < 0.5, 1.0, np.where(t < 0.75, 0.1, 0.01))
    if name == "restarts":
        return warm * (0.01 + 0.495 * (1 + np.cos(np.pi * ((t * 4) % 1.0))))
    return np.where(t < 0.3, 0.04 + 0.96 * t / 0.3, np.maximum(0.001, 0.5 * (1 + np.cos(np.pi * (t - 0.3) / 0.7))))


@dataclass(frozen=True, slots=True)
class Setting:
    """How one healthy run is drawn."""

    rows: int = 2000
    kind: str = "gauss"
    phi: float = 0.0
    sd: float = 0.015
    """Relative noise of the loss."""
    metrics: bool = True
    """Whether learning rate, gradient norm, step time and evaluations are there too."""


def healthy(rng: np.random.Generator, s: Setting) -> Run:
    """Return a healthy run."""
    every = int(rng.choice([1, 5, 10, 50]))
    step = every * np.arange(1, s.rows + 1)
    t = np.linspace(0.0, 1.0, s.rows)
    level = curve(rng, t)
    name = str(rng.choice(SCHEDULES))
    if name == "step":
        level = level * np.where(t < 0.5, 1.0, np.where(t < 0.75, 0.9, 0.88))
    series = {"train/loss": Series("train/loss", step, level * (1.0 + s.sd * noise(rng, s.rows, s.kind, s.phi)))}
    if s.metrics:
        series |= _others(rng, s, step, t, level, name)
    return Run("synthetic", "synthetic", "synthetic", series)


def _others(
    rng: np.random.Generator, s: Setting, step: NDArray[np.int64], t: FloatArray, level: FloatArray, name: str
) -> dict[str, Series]:
    peak = float(10.0 ** rng.uniform(-5, -2.5))
    sigma = float(rng.uniform(0.1, 0.5))
    norm = (0.3 + float(rng.uniform(0, 4)) * np.exp(-t * 20)) * np.exp(sigma * noise(rng, s.rows, "gauss", s.phi))
    seconds = float(rng.uniform(0.05, 3)) * (
        1 + float(rng.uniform(0.01, 0.12)) * np.abs(noise(rng, s.rows, "gauss", 0.2))
    )
    seconds[: max(1, s.rows // 200)] *= 4.0
    seconds[:: int(rng.integers(40, 200))] *= float(rng.uniform(1, 6))
    out = {
        "learning_rate": Series("learning_rate", step, peak * schedule(name, t)),
        "train/grad_norm": Series("train/grad_norm", step, norm),
        "train/step_time": Series("train/step_time", step, seconds),
    }
    evals = int(rng.choice([5, 12, 40, 100]))
    at = np.unique(np.linspace(s.rows // evals, s.rows - 1, evals).astype(int))
    held_out = level[at] * (1.03 + float(rng.uniform(0.001, 0.03)) * noise(rng, len(at), "gauss", 0.0))
    out["eval/loss"] = Series("eval/loss", step[at], held_out)
    return out


def with_loss(run: Run, value: FloatArray) -> Run:
    """Return `run` with another training loss."""
    loss = run.series["train/loss"]
    return replace(run, series={**run.series, "train/loss": Series(loss.name, loss.step, value)})
