"""Made losses to judge step by step, and the steps at which a detector alarms."""

import math

import numpy as np


def decay(n):
    return 1.7 + 6 * (np.arange(n) + 20.0) ** -0.35


def noise(rng, kind, n):
    if kind == "gauss":
        return rng.normal(size=n)
    if kind == "t3":
        return rng.standard_t(3, size=n) / math.sqrt(3)
    phi = float(kind.removeprefix("ar"))
    shocks, x = rng.normal(size=n) * math.sqrt(1 - phi * phi), np.zeros(n)
    for i in range(1, n):
        x[i] = phi * x[i - 1] + shocks[i]
    return x


def alarms(detector, values):
    return [i for i, v in enumerate(values) if detector.update(float(v)) is not None]


def learned(seed, n=6000):
    """A loss that falls to what float32 leaves of it: rounding to whole units, and now and then a rare example."""
    rng = np.random.default_rng(seed)
    level = 1e-7 + 4 * np.exp(-np.arange(n) / 120)
    return np.abs(np.round((level * rng.lognormal(0, 0.6, n) + (rng.random(n) < 0.01) * 2e-6) / 7.45e-9) * 7.45e-9)
