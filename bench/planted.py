"""Measure whether planted faults are found, and nothing else.

    python bench/planted.py [--replicas 20] [--seed 1] [-v]

Each fault is planted at a random place, with a random size, into a random healthy run of 300 to 4,000
rows. Prints for each kind how many were found at warning or error within 3 % of the run, and how many
runs got another alarm on top.
"""

from __future__ import annotations

import argparse

import numpy as np
from loss_faults import (
    blow_up,
    flat,
    leak,
    level_shift,
    oscillating,
    overfit,
    slow_divergence,
    spike_decay,
    spike_early,
    spike_point,
    stuck,
)
from planting import Fault, Planted, base, put, span

from trainscope.core.finding import Severity
from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge


def grad_burst(rng: np.random.Generator) -> Planted:
    run = base(rng)
    g = run.series["train/grad_norm"].value.copy()
    at, length = int(rng.integers(len(g) // 5, len(g) - 40)), int(rng.integers(4, 20))
    g[at : at + length] *= rng.uniform(12, 300)
    return put(run, "train/grad_norm", g), {"grad_norm"}, *span(run, at, at + length)


def grad_drift(rng: np.random.Generator) -> Planted:
    run = base(rng)
    g = run.series["train/grad_norm"].value.copy()
    at = int(len(g) * rng.uniform(0.3, 0.6))
    g[at:] *= np.exp(np.linspace(0, np.log(rng.uniform(25, 200)), len(g) - at))
    return put(run, "train/grad_norm", g), {"grad_norm"}, *span(run, at, len(g))


def grad_gone(rng: np.random.Generator) -> Planted:
    run = base(rng)
    g = run.series["train/grad_norm"].value.copy()
    at = int(len(g) * rng.uniform(0.2, 0.8))
    g[at:] *= float(rng.choice([0.0, 1e-9, 1e-6]))
    return put(run, "train/grad_norm", g), {"grad_vanishing", "grad_norm"}, *span(run, at, len(g))


def clipped(rng: np.random.Generator) -> Planted:
    run = base(rng)
    g = run.series["train/grad_norm"].value.copy()
    at = int(len(g) * rng.uniform(0.2, 0.6))
    g[at:] = float(rng.choice([0.5, 1.0, 5.0]))
    return put(run, "train/grad_norm", g), {"grad_norm"}, *span(run, at, len(g))


def rate_jump(rng: np.random.Generator) -> Planted:
    run = base(rng)
    rate = run.series["learning_rate"].value.copy()
    t = np.linspace(0, 1, len(rate))
    rate = 3e-4 * np.minimum(1, (t + 1e-9) / 0.04) * (0.1 + 0.45 * (1 + np.cos(np.pi * t)))
    at = int(len(rate) * rng.uniform(0.2, 0.8))
    rate[at:] *= rng.uniform(2, 10)
    return put(run, "learning_rate", rate), {"lr_schedule"}, *span(run, at - 1, at)


def rate_restart(rng: np.random.Generator) -> Planted:
    run = base(rng)
    n = len(run.series["learning_rate"])
    t = np.linspace(0, 1, n)
    rate = np.minimum(1, (t + 1e-9) / 0.05) * (0.1 + 0.45 * (1 + np.cos(np.pi * t)))
    at = int(n * rng.uniform(0.3, 0.6))
    rate[at:] = rate[: n - at]
    return put(run, "learning_rate", 3e-4 * rate), {"lr_schedule"}, *span(run, at, at + n // 20)


def rate_zero(rng: np.random.Generator) -> Planted:
    run = base(rng)
    rate = run.series["learning_rate"].value.copy()
    at = int(len(rate) * rng.choice([0.0, 0.5, 0.8]))
    rate[at:] = 0.0
    return put(run, "learning_rate", rate), {"lr_zero", "lr_schedule"}, *span(run, at, len(rate))


def slower(rng: np.random.Generator) -> Planted:
    run = base(rng)
    x = run.series["train/step_time"].value.copy()
    a = int(len(x) * rng.uniform(0.3, 0.7))
    b = len(x) if rng.random() < 0.5 else min(len(x), a + int(len(x) * rng.uniform(0.12, 0.3)))
    factor = rng.uniform(1.7, 4)
    x[a:b] *= np.linspace(1, factor, b - a) if rng.random() < 0.4 and b == len(x) else factor
    return put(run, "train/step_time", x), {"throughput"}, *span(run, a, b)


def not_a_number(rng: np.random.Generator) -> Planted:
    run = base(rng)
    name = str(rng.choice(["train/loss", "train/grad_norm", "eval/loss"]))
    x = run.series[name].value.copy()
    at = int(rng.integers(len(x) // 5, len(x)))
    x[at : at + int(rng.integers(1, 20))] = rng.choice([np.nan, np.inf])
    step = run.series[name].step
    return put(run, name, x), {"non_finite"}, int(step[at]), int(step[min(len(x) - 1, at + 20)])


FAULTS: tuple[Fault, ...] = (
    spike_point, spike_decay, spike_early, slow_divergence, blow_up, level_shift, flat, stuck, overfit, grad_burst,
    grad_drift, grad_gone, clipped, rate_jump, rate_restart, rate_zero, slower, leak, oscillating, not_a_number,
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    chosen = configure(Settings())
    print(f"{'fault':18s} {'found':>8s} {'extra':>8s}")
    hits = extras = total = 0
    for k, fault in enumerate(FAULTS):
        if options.only not in fault.__name__:
            continue
        found = extra = 0
        for i in range(options.replicas):
            run, kinds, begin, end = fault(np.random.default_rng([options.seed, k, i]))
            margin = 0.03 * float(run.last_step or 0)
            alarms = [f for f in judge(run, chosen).findings if f.severity >= Severity.WARNING]
            right = [f for f in alarms if f.detector in kinds and f.start_step is not None and f.end_step is not None
                     and f.end_step >= begin - margin and f.start_step <= end + margin]  # fmt: skip
            wrong = [f for f in alarms if f not in right]
            found, extra = found + bool(right), extra + bool(wrong)
            if options.verbose and (not right or wrong):
                loss = run.series["train/loss"]
                print(f"  {fault.__name__} {i}: {len(loss)} rows, planted {begin}-{end} of {run.last_step}: "
                      f"{'found' if right else 'MISSED'} {[f'{f.detector}: {f.message}' for f in wrong]}")  # fmt: skip
        print(f"{fault.__name__:18s} {found:>4d}/{options.replicas:<3d} {extra:>4d}/{options.replicas:<3d}")
        hits, extras, total = hits + found, extras + extra, total + options.replicas
    print(f"found {hits}/{total} = {hits / total:.1%}, another alarm in {extras} = {extras / total:.1%}")


if __name__ == "__main__":
    main()
