"""Small runs with known noise, and one planted fault for each detector. Truth for the tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from synthetic import noise

from trainscope.core.finding import Finding, Severity
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


@dataclass(frozen=True, slots=True, eq=False)
class Planted:
    """A run with one fault, and where it is."""

    run: Run
    start: int
    """Step at which the fault begins."""
    severity: Severity
    slack: int = 0
    """Steps that the found start may be off: the width of a block for detectors that judge blocks."""
    params: Mapping[str, object] | None = None


def _loss(value: FloatArray, start: int, severity: Severity = Severity.WARNING, slack: int = 0) -> Planted:
    return Planted(run_of({"train/loss": value}), at(start), severity, slack)


def _spike() -> Planted:
    x = falling()
    x[200] *= 1.5
    return _loss(x, 200)


def _unrecovered() -> Planted:
    x = falling()
    x[200:203] *= 3.0
    x[203:] *= 1.13
    return _loss(x, 200, Severity.ERROR)


def _shift() -> Planted:
    x = falling()
    x[200:] *= 1.1
    return _loss(x, 200, slack=20)


def _divergence() -> Planted:
    x = falling()
    x[280:] *= np.linspace(1.0, 2.0, ROWS - 280)
    return _loss(x, 280, Severity.ERROR, slack=200)


def _zero() -> Planted:
    x = falling()
    x[250:300] = 0.0
    return _loss(x, 250, Severity.ERROR)


def _nan() -> Planted:
    x = falling()
    x[200:206] = np.nan
    return _loss(x, 200)


def _flat() -> Planted:
    return _loss(4.0 * (1.0 + 0.01 * noise(np.random.default_rng(3), ROWS, "gauss", 0)), 0)


def _swing() -> Planted:
    k = np.arange(ROWS)
    return _loss(falling(sd=0.03) * (1.0 + 0.3 * np.sin(k / 3.0)), ROWS // 3)


def _floor() -> Planted:
    k = np.arange(ROWS)
    return _loss((0.002 + 5.0 * np.exp(-k / 2.0)) * (1.0 + 0.02 * noise(np.random.default_rng(4), ROWS, "gauss", 0)), 0)


def _overfitting() -> Planted:
    k = np.arange(20)
    held_out = 2.2 + 2.0 * np.exp(-k / 2.0) + 0.08 * np.maximum(0, k - 10)
    held_out *= 1.0 + 0.002 * noise(np.random.default_rng(5), 20, "gauss", 0)
    run = run_of({"train/loss": falling(), "eval/loss": held_out})
    return Planted(run, int(run.series["eval/loss"].step[10]), Severity.WARNING, slack=400)


def _eval_noise() -> Planted:
    held_out = 2.0 + 0.8 * noise(np.random.default_rng(6), 30, "gauss", 0).clip(-2, 2)
    run = run_of({"train/loss": falling(), "eval/loss": held_out})
    return Planted(run, int(run.series["eval/loss"].step[0]), Severity.WARNING)


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


def _collapse() -> Planted:
    x = returns((0, 0.0), (180, 500.0), (250, 500.0), (251, 0.0))
    return Planted(run_of({"train/reward": x}), at(251), Severity.ERROR, slack=200)


def _won() -> Planted:
    return Planted(run_of(game(won=200)), at(200), Severity.WARNING, slack=100)


def _burst() -> Planted:
    x = norms()
    x[200:206] *= 30.0
    return Planted(run_of({"train/grad_norm": x}), at(200), Severity.WARNING)


def _vanished() -> Planted:
    x = norms()
    x[250:] *= 1e-7
    return Planted(run_of({"train/grad_norm": x}), at(250), Severity.ERROR)


def _rate_jump() -> Planted:
    x = cosine()
    x[200:] *= 4.0
    return Planted(run_of({"train/loss": falling(), "learning_rate": x}), at(199), Severity.WARNING)


def _rate_zero() -> Planted:
    x = cosine()
    x[200:] = 0.0
    return Planted(run_of({"learning_rate": x}), at(200), Severity.ERROR)


def _slow() -> Planted:
    x = 0.5 * (1.0 + 0.03 * np.abs(noise(np.random.default_rng(7), ROWS, "gauss", 0)))
    x[240:] *= 2.0
    return Planted(run_of({"train/step_time": x}), at(240), Severity.WARNING, slack=80)


def _gap() -> Planted:
    step = EVERY * np.arange(1, ROWS + 1)
    step[200:] += 1000
    run = run_of({"train/loss": falling()})
    series = {"train/loss": Series("train/loss", step, run.series["train/loss"].value)}
    return Planted(replace(run, series=series), at(199), Severity.WARNING)


def _unmet() -> Planted:
    params = {"expect": ("train/loss at step 2000 <= 1.5",)}
    return Planted(run_of({"train/loss": falling()}), 2000, Severity.ERROR, params=params)


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


def _order() -> Planted:
    return Planted(in_epochs(falling() * batches(8), 8.0), at(100), Severity.WARNING)


def _stairs() -> Planted:
    return Planted(in_epochs(stairs(4), 4.0), at(100), Severity.INFO)


def _waiting() -> Planted:
    seconds = 0.5 * (1.0 + 0.03 * np.abs(noise(np.random.default_rng(15), ROWS, "gauss", 0)))
    return Planted(run_of({"train/step_time": seconds, "data_time": 0.4 * seconds**2}), at(20), Severity.INFO)


def _leak() -> Planted:
    return Planted(run_of({"memory_allocated": np.linspace(1000.0, 2000.0, ROWS)}), at(40), Severity.WARNING, slack=200)


PLANTED: Mapping[str, Planted] = {
    "non_finite": _nan(), "zero_loss": _zero(), "divergence": _divergence(), "unrecovered_spike": _unrecovered(),
    "spikes": _spike(), "loss_shift": _shift(), "plateau": _flat(), "oscillation": _swing(),
    "overfitting": _overfitting(), "eval_noise": _eval_noise(), "loss_floor": _floor(), "grad_norm": _burst(),
    "grad_vanishing": _vanished(), "lr_schedule": _rate_jump(), "lr_zero": _rate_zero(), "throughput": _slow(),
    "epoch_order": _order(), "epoch_steps": _stairs(), "data_wait": _waiting(), "memory_growth": _leak(),
    "step_order": _gap(), "expectation": _unmet(), "reward_collapse": _collapse(), "gan_imbalance": _won(),
}  # fmt: skip
