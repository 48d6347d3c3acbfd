"""optimizer_state: the optimizer forgets its moments in the middle of the run.

What it finds
    A step counter in the optimizer's state that falls, or a new optimizer object whose moments are far smaller
    than those of the one before: an optimizer built anew each epoch, or a resume that does not load its state.
Algorithm
    Exact where the optimizer counts its steps (Adam and kin): the counter of one parameter, so that another model,
    parameters that join later and optimizers that take turns lose nothing. Where it does not (SGD with momentum):
    another optimizer was constructed, and the norm of all momentum buffers fell to less than ``kept`` of what it was
    within that step. In a run of the Python recorder, which has no counter: the norm of Adam's second moments fell to
    less than ``second`` of what it was, faster than beta2 lets it decay.
Parameters
    kept: share of the moments' norm that survives an ordinary step.
    second: share of the second moments' norm that survives six ordinary steps.
False positives
    A reset that is meant, such as a second phase with its own optimizer.
Misses
    An optimizer without state; a state that is lost before the first recorded step.
Reference
    NVIDIA-NeMo/Automodel#763 (optimizer and scheduler not restored after a refactor).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Detector, Skipped, needs_smoke

SECOND = "optimizer/v_norm"
NEAR = 6
"""Steps between two recorded moments that may be compared: every fifth is recorded, or the next where it was empty."""
LOST, FIRST = "smoke/optimizer_state_lost", "smoke/optimizer_is_first"
COUNTER, CREATED, MOMENTS = "smoke/optimizer_state_step", "smoke/optimizers_created", "optimizer/m_norm"


@dataclass(frozen=True, slots=True)
class Params:
    """What counts as forgotten."""

    kept: float = 0.6
    """Momentum 0.9 keeps 0.9 of its buffer in a step, whatever the gradient."""
    second: float = 0.4
    """Adam's second moment keeps beta2, at least 0.9 of itself, in a step: 0.53 in six."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding that names the steps at which state was lost."""
    skip = needs_smoke(run, COUNTER, CREATED)
    if skip is not None:
        if run.get(SECOND) is None:
            return skip
        lost = _second_moment_falls(run, params)
    else:
        lost = sorted({*_counter_falls(run), *_moments_gone(run, params)})
    if not lost:
        return []
    often = "once" if len(lost) == 1 else f"{len(lost)} times"
    return [
        Finding(
            detector="optimizer_state",
            severity=Severity.ERROR,
            title="Optimizer state lost",
            message=f"The optimizer lost its state {often}, first at step {lost[0]}: its moments start again from 0.",
            metric=MOMENTS,
            start_step=lost[0],
            end_step=lost[-1],
            peak_step=lost[0],
            evidence={"times": len(lost)},
            fixes=(
                "Build the optimizer once, before the loop, and the scheduler on that same object.",
                "On a resume load the optimizer's state dict too.",
            ),
        )
    ]


def _counter_falls(run: Run) -> list[int]:
    lost = run.get(LOST)
    if lost is not None:
        return facts.positive_steps(lost)
    counter = run.get(COUNTER)  # a recording from before the counters were watched one by one
    if counter is None:
        return []
    return [int(s) for s in counter.step[1:][np.diff(counter.value) < 0]]


def _second_moment_falls(run: Run, params: Params) -> list[int]:
    """Return the steps at which Adam's second moment is far below what it decays to in the steps between."""
    norm = run.get(SECOND)
    if norm is None:
        return []
    near = np.diff(norm.step) <= NEAR
    return [int(s) for s in norm.step[1:][near & (norm.value[1:] < params.second * norm.value[:-1])]]


def _moments_gone(run: Run, params: Params) -> list[int]:
    created, moments = run.get(CREATED), run.get(MOMENTS)
    if created is None or moments is None:
        return []
    step, a, b = np.intersect1d(created.step, moments.step, assume_unique=True, return_indices=True)
    fresh = np.diff(created.value[a]) > 0
    norm = moments.value[b]
    first = set(facts.positive_steps(run.get(FIRST)))
    return [int(s) for s in step[1:][fresh & (norm[1:] < params.kept * norm[:-1])] if int(s) not in first]


DETECTOR = Detector("optimizer_state", "Optimizer state lost", (COUNTER, CREATED, MOMENTS), Params(), detect)
