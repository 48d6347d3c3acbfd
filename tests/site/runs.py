"""Runs with everything that a site shows, made up so that each number is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.run import Histograms, Run, Series
from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge
from trainscope.report.build import Judged, build_document
from trainscope.report.cases import case_of
from trainscope.site import bundle
from trainscope.site.collect import record_of
from trainscope.site.plans import plan_for

STEPS = 400
SPIKE = 300
START = 1_790_000_000


@dataclass(frozen=True, eq=False)
class Layers:
    """Statistics and histograms of a few layers."""

    names: tuple[str, ...]
    points: dict[tuple[str, str], Series]

    def layers(self):
        return self.names

    def metrics(self):
        return tuple(dict.fromkeys(metric for _, metric in self.points))

    def series(self, layer, metric):
        return self.points.get((layer, metric), Series(metric, np.zeros(0), np.zeros(0)))

    def histograms(self, layer):
        step = np.arange(0, STEPS, 100)
        edges = np.tile(np.linspace(-1, 1, 17), (len(step), 1))
        middle = np.linspace(-1, 1, 16)
        shift = 0.1 * (1 + self.names.index(layer)) / len(self.names)
        counts = np.stack([np.round(1000 * np.exp(-((middle - shift * i) ** 2) / 0.1)) for i in range(len(step))])
        return Histograms(step, counts, edges)


@dataclass(frozen=True, eq=False)
class Shares:
    """One router whose expert 3 takes over."""

    names: tuple[str, ...] = ("blocks.1.router",)

    def blocks(self):
        return self.names

    def shares(self, block):
        step = np.arange(0, STEPS, 4)
        logits = np.zeros((len(step), 8))
        logits[:, 3] = 4 * step / STEPS
        shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        return step, shares


def layers(names=tuple(f"blocks.{i}.mlp.weight" for i in range(6))):
    step = np.arange(STEPS)
    rng = np.random.default_rng(1)
    points = {}
    for i, name in enumerate(names):
        for metric in ("grad_l2_norm", "act_kurtosis"):
            value = np.exp(rng.normal(0, 0.1, STEPS)) * (1 + i)
            value[SPIKE : SPIKE + 8] *= 50 if i == 2 else 2
            points[name, metric] = Series(metric, step, value)
    return Layers(tuple(names), points)


def loss(steps=STEPS, spike=SPIKE, seed=0):
    step = np.arange(steps)
    value = 2 + 3 * np.exp(-step / (steps / 8)) + np.random.default_rng(100 + seed).normal(0, 0.02, steps)
    if spike is not None:
        value[spike : spike + 4] += np.array([9, 6, 3, 1])
    return step, value


def rich(name="moe-8x1b", *, spike=SPIKE, seed=0, layer_table=None, shares=True, metrics=(), config=None):
    """Return a run with losses, layers, histograms and shares."""
    step, value = loss(spike=spike, seed=seed)
    time = START + seed * 86_400 + step.astype(float)
    rng = np.random.default_rng(200 + seed)
    norm = np.exp(rng.normal(0, 0.1, STEPS))
    if spike is not None:
        norm[spike - 2 : spike + 4] *= 30
    series = {
        "train/loss": Series("train/loss", step, value, time),
        "eval/loss": Series("eval/loss", step[::40], value[::40] * 0.98 + 0.1, time[::40]),
        "train/grad_norm": Series("train/grad_norm", step, norm, time),
        "learning_rate": Series("learning_rate", step, 3e-4 * np.cos(step / STEPS), time),
        "train/step_time": Series("train/step_time", step, 0.4 + rng.normal(0, 0.01, STEPS), time),
    }
    for extra in metrics:
        series[extra] = Series(extra, step, 1 + rng.normal(0, 0.1, STEPS), time)
    return Run(
        name=name,
        source=f"runs/{seed}.jsonl",
        format="jsonl",
        series=series,
        config={"optimizer.lr": 3e-4, "seed": seed, "git_branch": "main", "git_commit": "3f9c2ab81d"}
        if config is None
        else config,
        layers=layers() if layer_table is None else layer_table,
        shares=Shares() if shares else None,
    )


def record(run):
    """Return the record of a run, judged as the command line would."""
    settings = Settings()
    chosen = configure(settings)
    one = Judged(run, judge(run, chosen), tuple(c.detector.id for c in chosen))
    (entry,) = build_document([one], settings).runs
    case = case_of(one)
    return record_of(case, entry, settings, plan_for(case, entry))


def write(folder, records):
    """Write records as `site build` reads them: one in a folder of its own each."""
    for one in records:
        (folder / one.id).mkdir(parents=True)
        (folder / one.id / bundle.NAME).write_text(bundle.to_text(one), encoding="ascii")
