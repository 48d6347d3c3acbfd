"""non_finite_origin: where the first NaN or infinity came from.

What it finds
    The first step at which a loss, a gradient or a weight is not finite, whether it began in the inputs, in a module
    (which, and in which operation) or in the arithmetic of the loss after the model's finite output, and the first
    parameters it reached; also where a logger shows a filtered loss instead.
Algorithm
    Exact, from a smoke run: raw losses at backward, gradients as the optimizer gets them, weights before the step. At
    the first loss that is not finite, the autograd graph behind it: the operation nearest the inputs whose saved
    values are not finite, or that takes the logarithm of 0 or divides by it, and the parameters nearest before it.
    Steps that a GradScaler refuses are its business and not a fault.
Parameters
    shown: how many parameter names a message spells out.
False positives
    A hand-written loss scaler that skips such steps itself: the loss was infinite all the same.
Misses
    Non-finite activations that no gradient sees.
Reference
    huggingface/trl#6702: the Trainer's filter replaces a NaN loss by an average while the NaN step is applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Detector, Skipped, needs_smoke, number
from trainscope.detectors.parameters_not_training import listed

SKIPPED = "amp/step_skipped"
LOSS, GRADIENT = "train/loss", "train/grad_norm"
AFTERWARDS = " in a gradient, while the loss of that step is finite: it came in the backward pass or after it"


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
    names = facts.names(run, "smoke.nonfinite_gradients")
    weights = facts.positive_steps(run.get("smoke/weights_nonfinite"))
    after_loss = _is_finite_at(run, LOSS, step)
    where = AFTERWARDS if after_loss else _where(run)
    reached = f"; it reached the gradients of {listed(names, params.shown)}" if names else ""
    poisoned = f"; the weights are not finite from step {weights[0]} on" if weights else ""
    return [
        Finding(
            detector="non_finite_origin",
            severity=Severity.ERROR,
            title="Origin of the first NaN or infinity",
            message=f"A value stopped being finite at step {step}{where}{reached}{poisoned}.",
            metric=GRADIENT if after_loss else LOSS,
            layer=_layer(run, names, after_loss=after_loss),
            start_step=step,
            end_step=step,
            peak_step=step,
            evidence={"step": step, "tensors": len(names)},
            fixes=(
                "Look at what changes gradients after the backward pass, and at the backward of functions of your own; "
                "torch.autograd.set_detect_anomaly(True) names an operation."
                if after_loss
                else "Guard the operation: an epsilon in a division or logarithm, a mean over a set that may be empty.",
                "Skip the step before it reaches the weights, and go back to a checkpoint if it did.",
            ),
        )
    ]


def _layer(run: Run, names: Sequence[str], *, after_loss: bool) -> str | None:
    """Return the module or parameter that it began in, None where that is unknown or was not in the model."""
    first = names[0] if names else None
    if after_loss:
        # Clipping by the norm spreads one NaN to every gradient: where all have it, the first is no place.
        return first if len(names) < len(facts.parameters(run)) else None
    # The module named beside a fault of the loss or of the input is the last good one.
    return None if _text(run, "place") in ("loss", "input") else _text(run, "module") or first


def _is_finite_at(run: Run, metric: str, step: int) -> bool:
    """Tell whether a metric is there and finite at a step: what is recorded of a later loss then says nothing."""
    series = run.get(metric)
    value = np.array([]) if series is None else series.value[series.step == step]
    return bool(len(value)) and bool(np.isfinite(value).all())


def _where(run: Run) -> str:
    """Say where it began, as far as that is known."""
    operation, module, place = (_text(run, key) for key in ("operation", "module", "place"))
    first = f", first in {operation}" if operation else ""
    if place == "input":
        return ": the model's input is not finite"
    if place == "loss":
        after = f" of module {module}" if module else ""
        return f" in the loss itself, after the finite output{after}{_output(run)}{first}"
    if place == "model" and module:
        return f"{first or ', first in the forward'} at or after module {module}{_output(run)}"
    return first + (f", after module {module}" if module and operation else "")


def _output(run: Run) -> str:
    """Describe the model's output in brackets, or not at all."""
    found = facts.mapping(run, "smoke.nonfinite_output")
    shape = found.get("shape")
    if not isinstance(shape, list):
        return ""
    low, high = found.get("low"), found.get("high")
    values = f", {number(low)} to {number(high)}" if isinstance(low, float) and isinstance(high, float) else ""
    return f" ({'x'.join(str(n) for n in shape) or 'scalar'}{values})"


def _text(run: Run, key: str) -> str | None:
    value = run.config.get(f"smoke.nonfinite_{key}")
    return value if isinstance(value, str) and value else None


def _refused(run: Run, step: int) -> bool:
    skipped = run.get(SKIPPED)
    return skipped is not None and bool(np.any(skipped.value[skipped.step == step] > 0))


DETECTOR = Detector("non_finite_origin", "Origin of the first NaN or infinity", ("smoke facts",), Params(), detect)
