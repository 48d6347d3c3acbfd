"""Small runs with known noise, and one planted fault for each detector. Truth for the tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from synthetic import noise

from trainscope.core.finding import Finding
from trainscope.core.run import Run, Series
from trainscope.detectors import by_id
from trainscope.detectors.base import Skipped

FloatArray = NDArray[np.float64]
ROWS = 400
EVERY = 10
"""Steps from one logged point to the next."""


def at(index: int) -> int:
    """Return the step of the point at `index`."""
    return EVERY * (index + 1)


def run_of(metrics: Mapping[str, object], **other: object) -> Run:
    """Return a run of equally spaced points; a short metric ends with the longest one."""
    value = {name: np.asarray(v, dtype=np.float64) for name, v in metrics.items()}
    last = at(max((len(v) for v in value.values()), default=0) - 1)
    series = {}
    for name, v in value.items():
        steps = last - EVERY * max(1, last // EVERY // max(1, len(v))) * np.arange(len(v))[::-1]
        series[name] = Series(name, steps, v)
    return replace(Run("made", "made.csv", "made", series), **other)


def falling(n: int = ROWS, seed: int = 0, sd: float = 0.01, kind: str = "gauss", phi: float = 0.0) -> FloatArray:
    """Return a cross-entropy that falls from 5 to 2, with noise of `sd` of its level."""
    t = np.linspace(0.0, 1.0, n)
    return np.asarray((2.0 + 3.0 * np.exp(-8.0 * t)) * (1.0 + sd * noise(np.random.default_rng(seed), n, kind, phi)))


def level(n: int = ROWS, seed: int = 0, sd: float = 0.01, kind: str = "gauss", phi: float = 0.0) -> FloatArray:
    """Return a loss that stays at 2, with noise of `sd` of its level."""
    return np.asarray(2.0 * (1.0 + sd * noise(np.random.default_rng(seed), n, kind, phi)))


def norms(n: int = ROWS, seed: int = 1) -> FloatArray:
    """Return a gradient norm that settles at 0.4, with log-normal noise of 20 %."""
    t = np.linspace(0.0, 1.0, n)
    return np.asarray((0.4 + 2.0 * np.exp(-20.0 * t)) * np.exp(0.2 * noise(np.random.default_rng(seed), n, "gauss", 0)))


def cosine(n: int = ROWS, peak: float = 3e-4) -> FloatArray:
    """Return a cosine schedule with a warm-up of 5 % and a last tenth of its peak."""
    t = np.linspace(0.0, 1.0, n)
    return np.asarray(peak * np.minimum(1.0, (t + 1e-3) / 0.05) * (0.1 + 0.45 * (1.0 + np.cos(np.pi * t))))


def scaled(run: Run, factor: float) -> Run:
    """Return `run` in another unit: every value of every metric times `factor`."""
    return replace(run, series={n: Series(n, s.step, s.value * factor, s.time) for n, s in run.series.items()})


def with_values(run: Run, name: str, value: FloatArray) -> Run:
    return replace(run, series={**run.series, name: Series(name, run.series[name].step, value)})


def findings(detector: str, run: Run, **params: object) -> list[Finding]:
    """Run one detector, which must not skip."""
    found = judged(detector, run, **params)
    assert not isinstance(found, Skipped), found
    return found


def judged(detector: str, run: Run, **params: object) -> list[Finding] | Skipped:
    one = by_id(detector)
    return one.detect(run, replace(one.params, **params))


def only(detector: str, run: Run, **params: object) -> Finding:
    """Run one detector, which must find one thing."""
    found = findings(detector, run, **params)
    assert len(found) == 1, [f.message for f in found]
    return found[0]


def returns(*levels: tuple[int, float], n: int = ROWS, seed: int = 8, sd: float = 40.0) -> FloatArray:
    """Return episode returns that go in straight lines through (index, level), with noise of `sd`."""
    where, height = zip(*levels, strict=True)
    return np.asarray(np.interp(np.arange(n), where, height) + sd * noise(np.random.default_rng(seed), n, "gauss", 0))


def game(n: int = ROWS, seed: int = 9, won: int | None = None) -> dict[str, FloatArray]:
    """Return the losses of a game in balance, lost by the generator from `won` on."""
    rng = np.random.default_rng(seed)
    d = np.abs(0.25 + 0.08 * noise(rng, n, "gauss", 0))
    g = np.abs(0.40 + 0.10 * noise(rng, n, "gauss", 0))
    if won is not None:
        d[won:] = 0.002 * np.abs(noise(rng, n - won, "gauss", 0))
        g[won:] = 0.7 - d[won:]
    return {"D_A": d, "G_A": g}


def in_epochs(loss: FloatArray, count: float, whole: bool = True, **other: FloatArray) -> Run:
    """Return a run of `count` epochs, counted in whole numbers or as a share that is rounded to two digits."""
    place = count * np.arange(len(loss)) / len(loss)
    return run_of({"train/loss": loss, "epoch": np.floor(place) if whole else np.round(place, 2), **other})


def batches(count: int, sd: float = 0.05, seed: int = 13, n: int = ROWS) -> FloatArray:
    """Return factors of a loss whose batches come in one order in each of `count` epochs."""
    each = 1.0 + sd * noise(np.random.default_rng(seed), n // count, "gauss", 0.0)
    return np.asarray(np.resize(each, n))


def stairs(count: int, drop: float = 0.2, n: int = ROWS, seed: int = 14, sd: float = 0.01) -> FloatArray:
    """Return a loss that falls by `drop` where each epoch begins."""
    place = np.floor(count * np.arange(n) / n)
    return np.asarray(2.0 * (1.0 - drop) ** place * (1.0 + sd * noise(np.random.default_rng(seed), n, "gauss", 0)))
