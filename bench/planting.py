"""A healthy run to plant a fault in, and what every planted fault needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from synthetic import Setting, healthy

from trainscope.core.run import Run, Series

LOSS_EVENTS = {"spikes", "unrecovered_spike", "loss_shift", "divergence"}
Planted = tuple[Run, set[str], int, int]
Fault = Callable[[np.random.Generator], Planted]


def base(rng: np.random.Generator, kinds: tuple[str, ...] = ("gauss",), low: int = 300, high: int = 4000) -> Run:
    rows = int(np.exp(rng.uniform(np.log(low), np.log(high))))
    return healthy(
        rng,
        Setting(rows, str(rng.choice(kinds)), float(rng.choice([0, 0.3])), float(rng.uniform(0.005, 0.04))),
    )


def put(run: Run, name: str, value: np.ndarray) -> Run:
    old = run.series[name]
    return replace(run, series={**run.series, name: Series(name, old.step, value, old.time)})


def span(run: Run, begin: int, end: int) -> tuple[int, int]:
    step = run.series["train/loss"].step
    return int(step[begin]), int(step[min(end, len(step) - 1)])


def sigma(run: Run, at: int) -> float:
    x = run.series["train/loss"].value[max(0, at - 60) : at]
    return float(1.4826 * np.median(np.abs(np.diff(x))) / 1.4142)
