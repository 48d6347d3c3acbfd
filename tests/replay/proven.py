"""A run with an incident, and replays of it without its batches."""

from __future__ import annotations

import json

import numpy as np

from trainscope.core.run import Run, Series
from trainscope.core.settings import Settings
from trainscope.detectors import configure
from trainscope.replay.config import ReplayConfig

N, AT = 300, 180
SKIP = [180, 181, 182]
CONFIG = ReplayConfig(skip_batches=SKIP, steps=SKIP, onset=AT)
CHOSEN = configure(Settings())


def clean(n: int = N + 10) -> np.ndarray:
    rng = np.random.default_rng(0)
    return 2.5 + 2 * np.exp(-np.arange(n) / 30) + 0.05 * rng.standard_normal(n)


def a_run(loss: np.ndarray, positions: np.ndarray, dropped: list[int] | None = None, loader: bool = True) -> Run:
    step = np.arange(len(loss))
    values = {"train/loss": loss, "batch_index": positions, "train/grad_norm": 1 + 0 * loss}
    config = {"smoke.data_loader": loader}
    if dropped is not None:
        config["smoke.dropped_batches"] = json.dumps(dropped)
    return Run("smoke", "s", "recorded", {k: Series(k, step, np.asarray(v, float)) for k, v in values.items()}, config)


def original() -> Run:
    loss = clean()[:N].copy()
    loss[AT : AT + 3] = 6.0
    return a_run(loss, np.arange(N))


def replayed(change=lambda loss: None, dropped=SKIP, **options) -> Run:
    kept = np.array([p for p in range(N + 3) if p not in dropped])[:N]
    loss = clean()[kept]
    change(loss)
    return a_run(loss, kept, dropped, **options)


def rises(at: int, high: float = 6.0):
    def change(loss):
        loss[at : at + 3] = high

    return change


def a_log(first: int = 1) -> Run:
    """The original as a plain log: no batches, and steps that count from one."""
    loss = original().series["train/loss"]
    return Run("log", "log.csv", "csv", {"train/loss": Series("train/loss", loss.step + first, loss.value)})
