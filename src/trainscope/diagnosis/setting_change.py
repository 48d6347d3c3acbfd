"""setting_change: dropout is gone, or the optimizer's own constants are others by far.

What it finds
    A model whose dropout was on in the baseline and is off everywhere now; betas, momentum, epsilon or weight decay
    of another order: a default that came back, a decimal that slipped. In a run of a few hundred steps they hardly
    show in the loss.
Algorithm
    Exact, from two smoke runs, and only where the losses are not the same to rounding. Moving averages (betas,
    momentum, RMSprop's alpha) are compared by their memory 1 / (1 - beta). Optimizers are compared in their order, and
    where both are of one class.
Parameters
    memory: largest ratio of memories, either way.
    epsilon: the same of epsilon.
    decay: the same of the weight decay, where both have any (see parameter_change for where it acts).
False positives
    An intended change: accept it as the new baseline.
Misses
    Dropout inside fused attention, and smaller changes, which provenance lists.
Reference
    Kingma and Ba, Adam, 2015: the moving averages remember 1 / (1 - beta) steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Lack, Skipped, number
from trainscope.diagnosis.base import Compared, Comparer, Comparison, Pair

AVERAGES = ("beta1", "beta2", "momentum", "alpha")
SAME = 1e-6
"""Relative difference of losses under which nothing that matters was set otherwise."""


@dataclass(frozen=True, slots=True)
class Params:
    """What is another order."""

    memory: float = 2.0
    """0.9 and 0.95 are the usual choices of one training; 0.95 and 0.999 are not."""
    epsilon: float = 99.0
    """1e-8 and 1e-6 are defaults of different libraries."""
    decay: float = 3.0
    """As often tuned as the learning rate, and slow to act."""


def compare(pair: Pair, params: Params) -> Compared | Skipped:
    """Compare what regularises, and the constants of the optimizers."""
    if not facts.is_smoke(pair.run) or not facts.is_smoke(pair.base):
        return Skipped("needs two smoke runs", kind=Lack.RECORDING)
    if _same_training(pair):
        return Compared((), (Comparison("settings", "same training"),))
    found = [f for f in (_dropout(pair), _constants(pair, params)) if f is not None]
    return Compared(tuple(found), (Comparison("settings", "changed" if found else "same"),))


def _same_training(pair: Pair) -> bool:
    both = pair.both("train/loss")
    if both is None or not len(both):
        return False
    return bool(np.allclose(both.run, both.base, rtol=SAME, atol=0.0, equal_nan=True))


def _dropout(pair: Pair) -> Finding | None:
    before, now = (max(facts.values(run, "smoke.model.dropout"), default=0.0) for run in (pair.base, pair.run))
    if not before or now or _random_modules(pair.run) >= _random_modules(pair.base):
        return None
    return Finding(
        detector="setting_change",
        severity=Severity.WARNING,
        title="Dropout lost",
        message=f"No dropout is on in the model; in the baseline up to {number(before)}.",
        metric="settings/dropout",
        evidence={"baseline": before},
        fixes=("Check how the dropout reaches the model's constructor; if it is meant, save a new baseline.",),
    )


def _random_modules(run: Run) -> float:
    """Return how many dropouts and batch norms run in train mode: a rate that nobody uses is none to lose."""
    series = run.get("smoke/train_mode_modules")
    return 0.0 if series is None or not len(series) else float(np.median(series.value))


def _constants(pair: Pair, params: Params) -> Finding | None:
    found = list(_other_constants(pair, params))
    if not found:
        return None
    listed = "; ".join(f"{name} {number(before)} in the baseline, now {number(now)}" for name, before, now in found)
    return Finding(
        detector="setting_change",
        severity=Severity.WARNING,
        title="Optimizer set otherwise",
        message=f"The optimizer has other constants: {listed}.",
        metric="settings/optimizer",
        evidence={"constants": len(found)},
        fixes=("If the change is meant, save a new baseline.",),
    )


def _other_constants(pair: Pair, params: Params) -> Iterator[tuple[str, float, float]]:
    count = int(min(facts.number(run, "smoke.optimizers") or 0.0 for run in (pair.run, pair.base)))
    for place in range(count):
        head = f"smoke.optimizer{place}."
        if pair.run.config.get(f"{head}class") != pair.base.config.get(f"{head}class"):
            continue
        for name in (*AVERAGES, "eps", "weight_decay"):
            now, before = facts.number(pair.run, head + name), facts.number(pair.base, head + name)
            if now is None or before is None or now == before:
                continue
            if name in AVERAGES:
                ratio, limit = (1.0 - before) / max(1.0 - now, 1e-12), params.memory
            elif not now or not before:
                continue
            else:
                ratio, limit = now / before, params.epsilon if name == "eps" else params.decay
            if not 1 / limit <= ratio <= limit:
                yield (name if count == 1 else f"{name} of optimizer {place}"), before, now


COMPARER = Comparer("setting_change", "Dropout or optimizer set otherwise", ("smoke facts",), Params(), compare)
