"""One run with a fault for every detector of plain logs, and what its finding must say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from synthetic import noise

from trainscope.core.finding import Severity
from trainscope.core.run import Run, Series

from .runs import (
    EVERY,
    ROWS,
    FloatArray,
    at,
    batches,
    cosine,
    falling,
    game,
    in_epochs,
    norms,
    returns,
    run_of,
    stairs,
)


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
