"""eval_mode: the model, or a part of it, trains in eval mode.

What it finds
    Dropout and batch-norm modules that run in eval mode in the forward before a backward: dropout is off, and
    running statistics stand still.
Algorithm
    Exact, from a smoke run: the mode in which each such module ran. Lost in the course of the run (error), or from
    the first step on in all of them (warning). Some modules in eval mode from the start are an information: frozen
    batch norms are common in fine-tuning; and so are all, where they are in parts that are frozen. Networks that are
    not trained, such as the one in a perceptual loss, do not count.
Parameters
    steps: least number of steps.
False positives
    Switching off dropout on purpose in a later phase.
Misses
    Models without dropout and batch norm, where the mode makes no difference.
Reference
    huggingface/lerobot#3668 and wkentaro/pytorch-fcn#57 (dropout off for ever after the first evaluation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Detector, Skipped, needs_smoke
from trainscope.detectors.parameters_not_training import listed

EVAL, TRAIN = "smoke/eval_mode_modules", "smoke/train_mode_modules"


@dataclass(frozen=True, slots=True)
class Params:
    """How often is a fault."""

    steps: int = 2
    """Once may be a warm-up before the loop."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding where training forwards run in eval mode."""
    skip = needs_smoke(run, EVAL)
    if skip is not None:
        return skip
    modules = run.get(EVAL)
    assert modules is not None
    steps = facts.positive_steps(modules)
    if len(steps) < params.steps:
        return []
    lost = steps[0] > int(modules.step[0]) or float(np.max(modules.value)) > float(modules.value[0])
    train = run.get(TRAIN)
    none = train is None or not train.value.any()
    names = facts.names(run, "smoke.eval_mode_modules")
    severity = Severity.ERROR if lost else Severity.WARNING if none and not _frozen(run, names) else Severity.INFO
    which = f" ({listed(names, 4)})" if names else ""
    when = f"from step {steps[0]} on" if lost else "from the first step on"
    return [
        Finding(
            detector="eval_mode",
            severity=severity,
            title="Training in eval mode",
            message=(
                f"{int(np.max(modules.value))} dropout or batch-norm modules{which} run in eval mode at {len(steps)} "
                f"training steps, {when}."
            ),
            metric=EVAL,
            start_step=steps[0],
            end_step=steps[-1],
            peak_step=steps[0],
            evidence={"modules": float(np.max(modules.value)), "steps": len(steps)},
            fixes=(
                "Call model.train() after each evaluation, before the next training step."
                if lost
                else "Call model.train() before the first step; if these modules are meant to be frozen, ignore this.",
            ),
        )
    ]


def _frozen(run: Run, names: Sequence[str]) -> bool:
    """Tell whether each module is in a part of the model, the smallest with parameters, of which all are frozen."""
    frozen = set(facts.names(run, "smoke.frozen"))
    parameters = [one.name for one in facts.parameters(run)]
    return bool(names and parameters) and all(_part(name, parameters) <= frozen for name in names)


def _part(name: str, parameters: Sequence[str]) -> set[str]:
    """Return the parameters of the smallest part around a module that has any."""
    inside: set[str] = set()
    while name and not inside:
        inside = {one for one in parameters if one.startswith(f"{name}.")}
        name = name.rpartition(".")[0]
    return inside or set(parameters)


DETECTOR = Detector("eval_mode", "Training in eval mode", (EVAL, TRAIN), Params(), detect)
