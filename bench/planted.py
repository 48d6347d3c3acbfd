"""Measure whether planted faults are found, and nothing else.

    python bench/planted.py [--replicas 20] [--seed 1] [-v]

Each fault is planted at a random place, with a random size, into a random healthy run of 300 to 4,000
rows. Prints for each kind how many were found at warning or error within 3 % of the run, and how many
runs got another alarm on top.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from synthetic import NOISES, Setting, healthy, noise, with_loss

from trainscope.core.finding import Severity
from trainscope.core.run import Run, Series
from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge

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


def spike_point(rng: np.random.Generator) -> Planted:
    run = base(rng, low=800)
    x = run.series["train/loss"].value.copy()
    at = int(rng.integers(len(x) // 4, len(x) - 20))
    x[at] += max(rng.uniform(12, 30) * sigma(run, at), 0.06 * abs(x[at]))
    return with_loss(run, x), LOSS_EVENTS, *span(run, at, at)


def spike_decay(rng: np.random.Generator) -> Planted:
    run = base(rng, NOISES)
    x = run.series["train/loss"].value.copy()
    at = int(rng.integers(len(x) // 5, len(x) - 120))
    k = np.arange(len(x) - at)
    x[at:] += x[at] * rng.uniform(0.8, 5) * np.exp(-k / rng.uniform(2, 20))
    return with_loss(run, x), LOSS_EVENTS, *span(run, at, at + 40)


def spike_early(rng: np.random.Generator) -> Planted:
    run = base(rng)
    x = run.series["train/loss"].value.copy()
    at = int(rng.integers(12, 30))
    x[at : at + int(rng.integers(1, 4))] = x[:5].max() * rng.uniform(1.8, 4)
    return with_loss(run, x), LOSS_EVENTS, *span(run, at, at + 3)


def slow_divergence(rng: np.random.Generator) -> Planted:
    run = base(rng, NOISES)
    x = run.series["train/loss"].value.copy()
    at = int(len(x) * rng.uniform(0.4, 0.75))
    ramp = np.linspace(0, 1, len(x) - at) ** float(rng.uniform(0.7, 2))
    x[at:] *= 1 + rng.uniform(0.3, 1.5) * ramp
    return with_loss(run, x), LOSS_EVENTS, *span(run, at, len(x))


def blow_up(rng: np.random.Generator) -> Planted:
    run = base(rng, NOISES)
    x = run.series["train/loss"].value.copy()
    tail = int(rng.integers(4, 40))
    x[-tail:] *= np.exp(np.linspace(0.3, rng.uniform(2, 20), tail))
    return with_loss(run, x), LOSS_EVENTS, *span(run, len(x) - tail, len(x))


def level_shift(rng: np.random.Generator) -> Planted:
    run = base(rng, NOISES)
    x = run.series["train/loss"].value.copy()
    at = int(len(x) * rng.uniform(0.3, 0.8))
    x[at:] *= 1 + rng.uniform(0.25, 1.0)
    return with_loss(run, x), LOSS_EVENTS, *span(run, at, at + 60)


def flat(rng: np.random.Generator) -> Planted:
    run = base(rng)
    n = len(run.series["train/loss"])
    x = float(rng.uniform(0.1, 11)) * (1 + rng.choice([0, 0.01, 0.05]) * noise(rng, n, "gauss", 0))
    held = run.series["eval/loss"]
    run = put(run, "eval/loss", np.full(len(held), x.mean()) * (1 + 0.004 * rng.normal(size=len(held))))
    return with_loss(run, x), {"plateau", "eval_noise"}, *span(run, 0, n)


def stuck(rng: np.random.Generator) -> Planted:
    run = base(rng, low=600)
    n = len(run.series["train/loss"])
    a, b = int(n * rng.uniform(0.05, 0.2)), int(n * rng.uniform(0.5, 0.7))
    t = np.arange(n)
    high, low = rng.uniform(3, 8), rng.uniform(0.4, 0.7)
    x = high * (1 + 0.8 * np.exp(-t / (a / 4))) * np.where(t < b, 1, low + (1 - low) * np.exp(-(t - b) / (0.05 * n)))
    rate = run.series["learning_rate"]
    run = put(run, "learning_rate", np.full(n, rate.value.max()))
    return with_loss(run, x * (1 + 0.01 * rng.normal(size=n))), {"plateau"}, *span(run, a, b)


def overfit(rng: np.random.Generator) -> Planted:
    run = base(rng)
    held = run.series["eval/loss"]
    n = int(rng.integers(9, 60))
    step = np.unique(np.linspace(1, run.series["train/loss"].step[-1], n).astype(int))
    best = int(len(step) * rng.uniform(0.25, 0.6))
    level = float(held.value.min())
    k = np.arange(len(step))
    x = level * (
        1 + 0.8 * np.exp(-k / (best / 4 + 0.5)) + rng.uniform(0.2, 0.9) * np.maximum(0, k - best) / (len(step) - best)
    )
    x *= 1 + rng.uniform(0.001, 0.02) * rng.normal(size=len(step))
    run = replace(run, series={**run.series, "eval/loss": Series("eval/loss", step, x)})
    return run, {"overfitting"}, int(step[best]), int(step[-1])


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


def leak(rng: np.random.Generator) -> Planted:
    run = base(rng)
    n = len(run.series["train/loss"])
    x = rng.uniform(0.0003, 0.005) + rng.uniform(0.8, 10) * np.exp(-np.linspace(0, 1, n) * rng.uniform(150, 400))
    held = run.series["eval/loss"]
    run = put(run, "eval/loss", x[-1] * (1 + 0.01 * rng.normal(size=len(held))))
    return with_loss(run, x * (1 + 0.03 * rng.normal(size=n))), {"loss_floor"}, *span(run, 0, n // 8)


def oscillating(rng: np.random.Generator) -> Planted:
    run = base(rng, low=500)
    n = len(run.series["train/loss"])
    t = np.arange(n)
    x = rng.uniform(2, 5) * (1 + np.exp(-t / (n / 40))) * (1 + rng.uniform(0.18, 0.4) * np.sin(t / rng.uniform(2, 12)))
    return (
        with_loss(run, x * (1 + 0.04 * rng.normal(size=n))),
        {"oscillation", "plateau", "spikes"},
        *span(run, n // 4, n),
    )


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
