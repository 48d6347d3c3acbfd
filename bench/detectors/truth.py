"""Loss curves of which the truth is known: one falling trend, healthy noise, and one fault of a given size.

The noise is that of :mod:`synthetic`, a fault's size is in standard deviations of it, and the fault begins at a random
step after all rules have warmed up. The trend and the grid follow one published sweep over such rules, so that figures
can be compared: 1.7 + 6 (t + 20)^-0.35, noise of 0.03 (1.4 % of the loss), half as much again at the start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from synthetic import NOISES, noise

FloatArray = NDArray[np.float64]

SIGMAS = (0.01, 0.03, 0.1)
"""Standard deviations of the noise: 0.5, 1.4 and 4.5 % of the loss at step 1,200."""
STEPS = 1600
ONSETS = (1050, 1450)
"""A fault begins in this range: one rule needs 1,000 steps of history, and 100 steps must follow."""
SIZES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
FAULTS = ("spike of 1 step", "spike of 5 steps", "step", "ramp", "exponential", "variance", "drift", "sign flip")


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of healthy noise."""

    name: str
    kind: str
    phi: float = 0.0
    outliers: float = 0.0
    """Share of single steps that are 3 to 8 standard deviations off, half of them upwards: hard and easy batches."""


FAMILIES = (
    *(Family(f"{kind}, AR({phi})" if phi else kind, kind, phi) for kind in NOISES for phi in (0.0, 0.3, 0.6)),
    Family("gauss, 1 % outliers", "gauss", 0.0, 0.01),
)
PLANTED_IN = ("gauss", "t3, AR(0.3)")
"""The noise that faults are planted in: the easiest and the one that breaks fixed thresholds."""


def family(name: str) -> Family:
    return next(f for f in FAMILIES if f.name == name)


def trend(t: FloatArray) -> FloatArray:
    return np.asarray(1.7 + 6.0 * (t + 20.0) ** -0.35)


def healthy_loss(rng: np.random.Generator, f: Family, sigma: float, steps: int = STEPS) -> FloatArray:
    """Return a healthy loss of shape (steps,)."""
    return trend(np.arange(steps, dtype=np.float64)) + sigma * _noise(rng, f, steps)


def _noise(rng: np.random.Generator, f: Family, steps: int) -> FloatArray:
    e = noise(rng, steps, f.kind, f.phi)
    if f.outliers:
        off = rng.random(steps) < f.outliers
        e = e + off * rng.uniform(3.0, 8.0, steps) * rng.choice([-1.0, 1.0], steps)
    return np.asarray(e * (1.0 + 0.5 * np.exp(-np.arange(steps) / 300.0)))


def planted_loss(rng: np.random.Generator, f: Family, sigma: float, fault: str, size: float) -> tuple[FloatArray, int]:
    """Return a loss of shape (STEPS,) and the step at which its fault begins.

    Parameters
    ----------
    fault : str
        One of ``FAULTS``. A ramp gains `size` standard deviations in 100 steps and a drift in 1,000; an exponential
        has gained as much after 50, with a time constant of 10; variance makes the noise 1 + `size` times as large; a
        sign flip walks back the way that the loss came, `size` steps for each step.
    size : float
        In standard deviations of the noise.
    """
    onset = int(rng.integers(*ONSETS))
    t = np.arange(STEPS, dtype=np.float64)
    e = sigma * _noise(rng, f, STEPS)
    k = np.maximum(0.0, t - onset)
    after = t >= onset
    if fault == "variance":
        return trend(t) + e * np.where(after, 1.0 + size, 1.0), onset
    if fault == "sign flip":
        return trend(np.where(after, np.maximum(0.0, onset - size * k), t)) + e, onset
    rise = {
        "spike of 1 step": after & (k < 1),
        "spike of 5 steps": after & (k < 5),
        "step": after,
        "ramp": k / 100.0,
        "exponential": np.minimum(np.expm1(np.minimum(k, 150.0) / 10.0) / np.expm1(5.0), 1e4),
        "drift": k / 1000.0,
    }[fault]
    return trend(t) + e + size * sigma * rise, onset
