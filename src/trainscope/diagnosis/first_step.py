"""first_step: from the same weights and the same batch, the first step computes something else.

What it finds
    Gradients that changed although weights, batch and loss are the baseline's: a loss scaled or no longer averaged,
    a path that is detached, a gradient that reaches a layer twice. Where the loss of that step changed too, and
    nothing random is in the way, another objective or another model.
Algorithm
    One exact look at the first step, before runs can drift apart, and only where the first weights and the batch
    are the same by hash. Loss: relative difference. Gradients: the norm of every matched tensor, differences
    relative to it or to a thousandth of the whole gradient, whichever is larger; more room where the losses
    differ by rounding.
Parameters
    gradient: largest relative difference of a tensor's gradient norm; ten times as much below single precision.
    loss: largest relative difference of the loss, likewise.
    dropped: the same where dropout is on, for runs whose random numbers agree up to the end of the step.
False positives
    An intended change of the objective or the model: accept it as the new baseline.
Misses
    What begins after the first step; a gradient of another direction and the same size.
Reference
    Equal mathematics in another order of operations gives 1e-6 in fp32 and 1e-3 in bf16 (measured).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Series
from trainscope.detectors.base import Skipped, number
from trainscope.diagnosis.base import Compared, Comparer, Comparison, Pair
from trainscope.diagnosis.matching import match
from trainscope.diagnosis.parameter_change import first_norm

LOSS = "smoke/objective"
COARSE = 10.0
"""How much coarser bf16 and fp16 are judged."""

ROUNDING = 100.0
"""How much more a tensor's gradient may be off than the loss is, where the forward rounds differently."""


@dataclass(frozen=True, slots=True)
class Params:
    """What is more than rounding."""

    gradient: float = 0.02
    """Of the tensor's own norm."""
    loss: float = 0.005
    """Of the baseline's first loss."""
    dropped: float = 0.1
    """The masks may still be drawn in another order, which moves a first loss by a few percent."""


def compare(pair: Pair, params: Params) -> Compared | Skipped:
    """Compare loss and gradients of the first step."""
    why = _not_alike(pair)
    if why is not None:
        return Skipped(why)
    dtype = str(facts.provenance(pair.base, "dtype") or "")
    coarse = 1.0 if dtype in ("", "torch.float32", "float32", "torch.float64", "float64") else COARSE
    loss = _relative(pair.run.get("train/loss"), pair.base.get("train/loss"))
    scaled = _relative(pair.run.get(LOSS), pair.base.get(LOSS))
    gradients, ratio, layer = _gradients(pair)
    # A forward that rounds differently (autocast, another kernel) gives gradients that differ by more than it does.
    allowed = max(params.gradient * coarse, ROUNDING * loss)
    lines = (
        Comparison("train/loss, first step", "same" if loss <= params.loss * coarse else "changed", 0, loss),
        Comparison("gradients, first step", "same" if gradients <= allowed else "changed", 0, ratio),
    )
    findings = []
    if loss > params.loss * coarse:
        alike = facts.first_difference(pair.run, pair.base, facts.RANDOM) != 0
        if not _random(pair) or (alike and facts.knows(pair.run, facts.RANDOM) and loss > params.dropped):
            findings.append(_other_objective(pair, loss))
    elif gradients > allowed:
        findings.append(_other_gradient(layer, gradients, ratio, scaled))
    return Compared(tuple(findings), lines)


def _not_alike(pair: Pair) -> str | None:
    if "smoke.model.initial_hash" not in pair.run.config or "smoke.model.initial_hash" not in pair.base.config:
        return "needs two smoke runs"
    if facts.initial_weights_differ(pair.run, pair.base):
        return "the first weights differ"
    if not facts.knows(pair.run, facts.BATCH) or facts.first_difference(pair.run, pair.base, facts.BATCH) == 0:
        return "the first batch differs"
    if pair.run.first_step != pair.base.first_step:
        return "the runs begin at different steps"
    return None


def _random(pair: Pair) -> bool:
    """Tell whether the first loss hangs on random numbers that may have been drawn in another order."""
    rates = (*facts.values(pair.run, "smoke.model.dropout"), *facts.values(pair.base, "smoke.model.dropout"))
    return any(rate > 0 for rate in rates) or facts.first_difference(pair.run, pair.base, facts.RANDOM) == 0


def _relative(mine: Series | None, theirs: Series | None) -> float:
    if mine is None or theirs is None:
        return 0.0
    a, b = float(mine.value[0]), float(theirs.value[0])
    if not (isfinite(a) and isfinite(b)):
        return 0.0 if isfinite(a) == isfinite(b) else float("inf")
    return abs(a - b) / max(abs(b), 1e-12)


def _gradients(pair: Pair) -> tuple[float, float, str | None]:
    """Return the largest relative difference of a gradient norm, its ratio and its tensor."""
    whole = pair.base.get("train/grad_norm")
    floor = 1e-3 * float(whole.value[0]) if whole is not None and isfinite(float(whole.value[0])) else 0.0
    worst: tuple[float, float, str | None] = (0.0, 1.0, None)
    matched = match(facts.parameters(pair.run), facts.parameters(pair.base))
    for theirs, mine in matched.items():
        a, b = first_norm(pair.run, mine, "grad_l2_norm"), first_norm(pair.base, theirs, "grad_l2_norm")
        if a is None or b is None or not (isfinite(a) and isfinite(b)):
            continue
        off = abs(a - b) / max(b, floor, 1e-30)
        if off > worst[0]:
            worst = (off, a / b if b else float("inf"), mine)
    return worst


def _other_objective(pair: Pair, loss: float) -> Finding:
    mine, theirs = pair.run.series["train/loss"].value[0], pair.base.series["train/loss"].value[0]
    return Finding(
        detector="first_step",
        severity=Severity.WARNING,
        title="Another objective or model",
        message=(
            f"From the same weights and batch the first loss is {number(float(mine))}, in the baseline "
            f"{number(float(theirs))}."
        ),
        metric="train/loss",
        start_step=pair.run.first_step,
        end_step=pair.run.first_step,
        evidence={"relative": loss, "value": float(mine), "baseline": float(theirs)},
        fixes=("If the objective or the model is meant to change, save a new baseline.",),
    )


def _other_gradient(layer: str | None, off: float, ratio: float, scaled: float) -> Finding:
    beside = f"; what was differentiated changed by {number(100 * scaled)} %" if scaled > 1e-3 else ""
    return Finding(
        detector="first_step",
        severity=Severity.WARNING,
        title="Another gradient of the same loss",
        message=(
            f"From the same weights, batch and loss the gradient of {layer} has {number(ratio)} times the baseline's "
            f"norm at the first step{beside}."
        ),
        metric="train/grad_norm",
        layer=layer,
        evidence={"ratio": ratio, "relative": off},
        fixes=(
            "Check what the loss is divided by, and for detach or no_grad on the way to this layer.",
            "If the change is meant, save a new baseline.",
        ),
    )


COMPARER = Comparer("first_step", "The first step computes something else", ("smoke facts",), Params(), compare)
