"""Recorded runs made by hand, each with one fault at a step and known consequences. Truth for the tests of stories."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trainscope.core.finding import Finding
from trainscope.core.run import FloatArray, Run, Series
from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge
from trainscope.diagnosis.signs import Story
from trainscope.diagnosis.story import tell

from .runs import Layers

STEPS, AT = 300, 180
NAMES = ("emb.weight", "a.qkv.weight", "a.out.weight", "b.fc.weight", "b.proj.weight", "head.weight")


def healthy(seed: int = 0) -> dict[str, FloatArray]:
    """Return the series of a healthy run: loss, gradient norm, learning rate, batches, evaluation."""
    rng = np.random.default_rng(seed)
    t = np.arange(STEPS)
    return {
        "train/loss": (2.4 + 2.2 * np.exp(-t / 40.0)) * (1.0 + 0.02 * rng.standard_normal(STEPS)),
        "train/grad_norm": 0.7 * np.exp(0.15 * rng.standard_normal(STEPS)),
        "learning_rate": 3e-3 * np.minimum(1.0, (t + 1) / 40) * (0.55 + 0.45 * np.cos(np.pi * t / STEPS)),
        "batch/token_entropy": 3.1 + 0.06 * rng.standard_normal(STEPS),
        "batch/repetition": 0.17 + 0.02 * rng.standard_normal(STEPS),
        "optimizer/update_norm": 0.09 * np.exp(0.1 * rng.standard_normal(STEPS)),
        "optimizer/v_norm": 0.01 * np.exp(0.01 * rng.standard_normal(STEPS)),
        "model/weight_norm": 17.0 + t / 150.0,
    }


def layers(seed: int = 0, names: tuple[str, ...] = NAMES) -> dict[tuple[str, str], FloatArray]:
    """Return healthy statistics of single layers."""
    rng = np.random.default_rng(seed + 1000)
    found = {}
    for name in names:
        found[name, "grad_l2_norm"] = 0.2 * np.exp(0.15 * rng.standard_normal(STEPS))
        found[name, "update_l2_norm"] = 0.03 * np.exp(0.1 * rng.standard_normal(STEPS))
        found[name, "weight_l2_norm"] = np.full(STEPS, 3.0)
        found[name, "update_ratio"] = found[name, "update_l2_norm"] / 3.0
    return found


def run_of(series: Mapping[str, FloatArray], table: Mapping[tuple[str, str], FloatArray] | None = None) -> Run:
    def made(name: str, value: FloatArray) -> Series:
        return Series(name, np.arange(len(value)), value)

    points = None if table is None else {key: made(key[1], value) for key, value in table.items()}
    return Run("made", "made", "recorded", {n: made(n, v) for n, v in series.items()}, layers=points and Layers(points))


def found_in(run: Run) -> list[Finding]:
    return list(judge(run, configure(Settings())).findings)


def stories(run: Run) -> tuple[Story, ...]:
    return tell(run, found_in(run))


def only(run: Run) -> Story:
    """Tell the one story of a run."""
    (story,) = stories(run)
    return story


def hurt(series: dict[str, FloatArray], at: int = AT, steps: int = 3, loss: float = 2.0, gradient: float = 6.0) -> None:
    """Let loss and gradient norm rise for a few steps."""
    series["train/loss"][at : at + steps] *= loss
    series["train/grad_norm"][at : at + steps] *= gradient


def bad_batch_in_mixed_precision(*, refused: bool) -> Run:
    """A bad batch a few steps after the loss scale overflowed, and the step was refused or taken."""
    series, table = healthy(0), layers(0)
    hurt(series)
    series["batch/token_entropy"][AT : AT + 3] = 4.5
    series["amp/grad_scale"], series["amp/step_skipped"] = np.full(STEPS, 1024.0), np.zeros(STEPS)
    series["amp/step_skipped"][AT - 3] = refused
    series["train/grad_norm"][AT - 3] = np.inf
    for name in NAMES:
        table[name, "grad_l2_norm"][AT - 3] = np.inf
        table[name, "grad_nan_inf_ratio"] = np.zeros(STEPS)
        table[name, "grad_nan_inf_ratio"][AT - 3] = 0.25
    return run_of(series, table)
