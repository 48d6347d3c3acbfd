"""Pairs of runs with a known difference. Truth for the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from trainscope.core.run import Run, Series
from trainscope.core.settings import Settings
from trainscope.diagnosis.compare import COMPARERS, compare_runs

STEPS = 150
NAMES = ("emb.weight", "fc1.weight", "fc1.bias", "fc2.weight", "head.weight")
SHAPES = ((40, 16), (32, 16), (32,), (16, 32), (40, 16))


@dataclass(frozen=True, slots=True)
class Layers:
    """Per-parameter statistics held in memory."""

    points: Mapping[tuple[str, str], Series]

    def layers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(layer for layer, _ in self.points))

    def metrics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(metric for _, metric in self.points))

    def series(self, layer: str, metric: str) -> Series:
        return self.points.get((layer, metric), Series(metric, np.array([], dtype=int), np.array([])))


def parameters(names: Sequence[str] = NAMES, shapes: Sequence[tuple[int, ...]] = SHAPES, seed: int = 0) -> list:
    """Return the fact ``smoke.parameters``; the same position has the same first bytes."""
    return [[n, list(s), 1000 + i + seed, "trained"] for i, (n, s) in enumerate(zip(names, shapes, strict=True))]


def layers(names: Sequence[str] = NAMES, scale: float = 1.0, gradient: Mapping[str, float] = MappingProxyType({})):
    """Return first norms of weights and gradients."""
    points = {}
    for i, name in enumerate(names):
        for metric, value in (("weight_l2_norm", scale * (2.0 + i)), ("grad_l2_norm", gradient.get(name, 0.5 + i))):
            points[name, metric] = Series(metric, np.array([0]), np.array([value]))
    return Layers(points)


def losses(seed: int = 0, n: int = STEPS, level: float = 2.0) -> NDArray[np.float64]:
    """Return a falling loss with the noise that one stream of batches gives."""
    noise = np.random.default_rng(seed).standard_normal(n)
    return level + 2.5 * np.exp(-np.arange(n) / 30.0) + 0.06 * noise


def log(loss: NDArray[np.float64], **series: object) -> Run:
    """Return a plain log of a loss, with other series under names whose ``__`` is a slash."""
    found = {"train/loss": loss, **{k.replace("__", "/"): v for k, v in series.items()}}
    made = {}
    for name, value in found.items():
        array = np.asarray(value, dtype=float)
        made[name] = Series(name, np.arange(len(array)), array)
    return Run("log", "log.jsonl", "jsonl", made)


def said(run: Run, *baselines: Run, **settings: object) -> dict[str, list]:
    """Return the findings of a comparison, warnings and errors only, by comparer."""
    found: dict[str, list] = {}
    for finding in compare_runs(run, baselines, Settings(**settings)).findings:
        if finding.severity > 1:
            found.setdefault(finding.detector, []).append(finding)
    return found


def only(run: Run, *baselines: Run, by: str):
    """Return the one finding that a comparison makes, which must be of this comparer."""
    found = said(run, *baselines)
    assert set(found) == {by}, {k: [f.message for f in v] for k, v in found.items()}
    (one,) = found[by]
    return one


def verdicts(run: Run, *baselines: Run) -> dict[str, str]:
    """Return the verdict on each compared metric."""
    return {line.metric: line.verdict for line in compare_runs(run, baselines, Settings()).lines}


def comparer(name: str):
    """Return a comparer by its id."""
    return next(c for c in COMPARERS if c.id == name)
