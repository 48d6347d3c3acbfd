"""setting_change: dropout is gone, or the optimizer's own constants are others by far.

What it finds
    A model whose dropout was on in the baseline and is off everywhere now; betas, momentum, epsilon or weight decay
    of another order: a default that came back, a decimal that slipped. In a run of a few hundred steps they hardly
    show in the loss.
Algorithm
    Exact, from two smoke runs, and only where the losses are not the same to rounding. Moving averages (betas,
    momentum, RMSprop's alpha) are compared by their memory 1 / (1 - beta). Optimizers are compared class by class,
    where both runs have as many, all their parameter groups together and by size: their order is nobody's setting.
    Dropout is gone where no training forward went through one (module, function or attention), and the first step drew
    no other random number either, as a dropout written by hand does.
Parameters
    memory: largest ratio of memories, either way.
    epsilon: the same of epsilon.
    decay: the same of the weight decay, where both have any (see parameter_change for where it acts).
False positives
    An intended change: accept it as the new baseline.
Misses
    Smaller changes, which provenance lists; lost dropout beside other noise.
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

    memory: float = 6.0
    """0.95 and 0.99 are both usual for one training; 0.95 and 0.999, or 0.9 and 0, are not."""
    epsilon: float = 999.0
    """1e-8 and 1e-6 are defaults of different libraries, and act alike."""
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
    """Return a finding where no training forward goes through a dropout, nor draws a random number of another kind."""
    used = "smoke.dropout_used"
    if pair.run.config.get(used) is None or pair.run.config.get("smoke.first_step_random") is True:
        return None
    before, now = (max(facts.values(run, used), default=0.0) for run in (pair.base, pair.run))
    if pair.run.config.get("smoke.compiled"):  # what is compiled is not seen
        now = max(now, *facts.values(pair.run, "smoke.model.dropout"), 0.0)
    if not before or now:
        return None
    silent = facts.names(pair.run, "smoke.eval_mode_modules")
    still = max(facts.values(pair.run, "smoke.model.dropout"), default=0.0) >= before and bool(silent)
    why = ": the model has it still, and runs it in eval mode" if still else ""
    fix = (
        "Call model.train() before the training step."
        if still
        else "Check how the dropout reaches the model's constructor; if it is meant, save a new baseline."
    )
    return Finding(
        detector="setting_change",
        severity=Severity.WARNING,
        title="Dropout lost",
        message=f"No dropout is on in training; in the baseline up to {number(before)}{why}.",
        metric="settings/dropout",
        evidence={"baseline": before},
        fixes=(fix,),
    )


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
    mine, theirs = _optimizers(pair.run), _optimizers(pair.base)
    for kind in theirs:
        if len(mine.get(kind, ())) != len(theirs[kind]):
            continue
        for name in (*AVERAGES, "eps", "weight_decay"):
            # By size: in which order optimizers and their groups are made is nobody's setting.
            now, before = (sorted(x for one in many[kind] for x in one.get(name, ())) for many in (mine, theirs))
            if len(now) != len(before):
                now, before = sorted(set(now)), sorted(set(before))
            if len(now) != len(before):
                continue
            for one, other in zip(now, before, strict=True):
                if _is_other(name, one, other, params):
                    yield (name if len(theirs) == 1 else f"{name} of {kind}"), other, one
                    break


def _is_other(name: str, now: float, before: float, params: Params) -> bool:
    if now == before:
        return False
    if name in AVERAGES:
        ratio, limit = (1.0 - before) / max(1.0 - now, 1e-12), params.memory
    elif not now or not before:
        return False
    else:
        ratio, limit = now / before, params.epsilon if name == "eps" else params.decay
    return not 1 / limit <= ratio <= limit


def _optimizers(run: Run) -> dict[str, list[dict[str, tuple[float, ...]]]]:
    """Return of each class of optimizers the constants of every one, of all its parameter groups."""
    found: dict[str, list[dict[str, tuple[float, ...]]]] = {}
    for place in range(int(facts.number(run, "smoke.optimizers") or 0.0)):
        head = f"smoke.optimizer{place}."
        constants: dict[str, tuple[float, ...]] = {}
        for name in (*AVERAGES, "eps", "weight_decay"):
            first = facts.number(run, head + name)
            several = facts.values(run, f"{head}{name}.groups")
            constants[name] = several or (() if first is None else (first,))
        found.setdefault(str(run.config.get(f"{head}class")), []).append(constants)
    return found


COMPARER = Comparer("setting_change", "Dropout or optimizer set otherwise", ("smoke facts",), Params(), compare)
