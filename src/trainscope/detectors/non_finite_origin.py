"""non_finite_origin: where the first NaN or infinity came from.

What it finds
    The first step at which a loss, a gradient or a weight is not finite, the first operation of the forward whose
    values were not, and the first parameters it reached; also where a logger shows a filtered loss instead.
Algorithm
    Exact, from a smoke run: raw losses at backward, gradients as the optimizer gets them, weights before the step.
    Steps that a GradScaler refuses are its business and not a fault.
Parameters
    shown: how many parameter names a message spells out.
False positives
    A hand-written loss scaler that skips such steps itself.
Misses
    Non-finite activations that no gradient sees.
Reference
    huggingface/trl#6702: the Trainer's filter replaces a NaN loss by an average while the NaN step is applied.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Detector, Skipped, needs_smoke
from trainscope.detectors.parameters_not_training import listed

SKIPPED = "amp/step_skipped"


@dataclass(frozen=True, slots=True)
class Params:
    """How much to say."""

    shown: int = 3
    """Parameter names in the message."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding that names step, operation and parameters."""
    skip = needs_smoke(run)
    if skip is not None:
        return skip
    first = facts.number(run, "smoke.nonfinite_step")
    if first is None or _refused(run, int(first)):
        return []
    step = int(first)
    operation = run.config.get("smoke.nonfinite_operation")
    names = facts.names(run, "smoke.nonfinite_gradients")
    weights = facts.positive_steps(run.get("smoke/weights_nonfinite"))
    where = f", first in {operation}" if isinstance(operation, str) and operation else ""
    reached = f"; it reached the gradients of {listed(names, params.shown)}" if names else ""
    poisoned = f"; the weights are not finite from step {weights[0]} on" if weights else ""
    return [
        Finding(
            detector="non_finite_origin",
            severity=Severity.ERROR,
            title="Origin of the first NaN or infinity",
            message=f"A value stopped being finite at step {step}{where}{reached}{poisoned}.",
            metric="train/loss",
            layer=names[0] if names else None,
            start_step=step,
            end_step=step,
            peak_step=step,
            evidence={"step": step, "tensors": len(names)},
            fixes=(
                "Guard the operation: an epsilon in a division or logarithm, a mean over a set that may be empty.",
                "Skip the step before it reaches the weights, and go back to a checkpoint if it did.",
            ),
        )
    ]


def _refused(run: Run, step: int) -> bool:
    skipped = run.get(SKIPPED)
    return skipped is not None and bool(np.any(skipped.value[skipped.step == step] > 0))


DETECTOR = Detector("non_finite_origin", "Origin of the first NaN or infinity", ("smoke facts",), Params(), detect)
