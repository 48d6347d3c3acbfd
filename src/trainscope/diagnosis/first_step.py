"""first_step: from the same weights and the same batch, the first step computes something else.

What it finds
    Gradients that changed although weights, batch and loss are the baseline's: a loss scaled or no longer averaged,
    a path that is detached, a gradient that reaches a layer twice. Where the loss of that step changed too, and
    nothing random is in the way, another objective or another model.
Algorithm
    One exact look at the first step, before runs can drift apart, and only where the first weights and the batch
    are the same by hash. Loss: relative difference. Gradients: the norm of every matched tensor, differences
    relative to it or to a hundredth of the whole gradient, whichever is larger; more room where the losses
    differ by rounding. In single precision on a CPU, without autocast, equal mathematics is equal to 1e-6, and the
    limits are a twentieth; other arithmetic is judged by the wider ones. Where dropout is on and the losses differ,
    the masks may have been drawn in another order: then only a loss, or a typical gradient of the matrices, that
    moved by more than other masks do.
Parameters
    gradient: largest relative difference of a tensor's gradient norm; ten times as much below single precision.
    loss: largest relative difference of the loss, likewise.
    fine: share of both limits that applies to single precision on a CPU.
    dropped: the same where dropout is on, for runs whose random numbers agree up to the end of the step; the dropout
        probability more, and more again on fewer than 32 samples.
    profile: for those, largest relative difference of the median matrix's gradient norm, at no dropout; seven
        tenths of the dropout probability more, and more on few samples.
False positives
    An intended change of the objective or the model: accept it as the new baseline.
Misses
    What begins after the first step; a gradient of another direction and the same size.
Reference
    Equal mathematics in another order of operations gives 1e-6 in fp32 and 1e-3 in bf16. Other masks moved the
    median matrix's gradient of a transformer by up to 0.06, 0.10, 0.15, 0.21 and 0.23 at dropout 0.05, 0.1, 0.2, 0.3
    and 0.5 on 32 samples, its loss by 0.09, 0.16, 0.16, 0.23 and 0.37; on 8 samples by up to twice and two and a half
    times as much; a lost positional encoding the gradient by 0.24 (measured).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Lack, Skipped, number
from trainscope.diagnosis.base import Compared, Comparer, Comparison, Pair
from trainscope.diagnosis.matching import match
from trainscope.diagnosis.pairing import SINGLE, is_fine
from trainscope.diagnosis.parameter_change import first_norm

LOSS = "smoke/objective"
COARSE = 10.0
"""How much coarser bf16 and fp16 are judged."""

ROUNDING, FINE_ROUNDING = 100.0, 30.0
"""How much more a tensor's gradient may be off than the loss is, where the forward rounds differently."""

SAME = 1e-6
"""Relative difference of two losses that were computed with the same dropout masks."""
LEAST_MATRICES = 8
ENOUGH = 32
"""Samples of a step at which masks were measured; on fewer they average out less."""
FLOOR = 1e-2
"""Of the whole gradient: a tensor whose own is a rounding error (the bias of a key) is not told by it."""


@dataclass(frozen=True, slots=True)
class Params:
    """What is more than rounding."""

    gradient: float = 0.02
    """Of the tensor's own norm."""
    loss: float = 0.005
    """Of the baseline's first loss."""
    fine: float = 0.05
    """Another order of operations moves a gradient by 1e-7; half of this is far above it."""
    dropped: float = 0.1
    """The masks may still be drawn in another order, which moves a first loss by less than this and the rate."""
    profile: float = 0.1
    """Above what other masks were measured to do."""


def compare(pair: Pair, params: Params) -> Compared | Skipped:
    """Compare loss and gradients of the first step."""
    why = _not_alike(pair)
    if why is not None:
        return Skipped(why, kind=Lack.DATA if facts.is_smoke(pair.run) else Lack.RECORDING)
    dtype = str(facts.provenance(pair.base, "dtype") or "")
    loss = _relative(pair.run.get("train/loss"), pair.base.get("train/loss"))
    drawn_otherwise = _random(pair) and loss > SAME
    fine = is_fine(pair.run) and is_fine(pair.base) and not drawn_otherwise
    coarse = params.fine if fine else 1.0 if dtype in ("", *SINGLE) else COARSE
    scaled = _relative(pair.run.get(LOSS), pair.base.get(LOSS))
    gradients, ratio, layer = _gradients(pair)
    # A forward that rounds differently (autocast, another kernel) gives gradients that differ by more than it does.
    allowed = max(params.gradient * coarse, (FINE_ROUNDING if fine else ROUNDING) * loss)
    lines = (
        Comparison("train/loss, first step", "same" if loss <= params.loss * coarse else "changed", 0, loss),
        Comparison("gradients, first step", "same" if gradients <= allowed else "changed", 0, ratio),
    )
    findings = []
    if loss > params.loss * coarse:
        if not drawn_otherwise or (_same_draws(pair) and _beyond_masks(pair, loss, params)):
            findings.append(_other_objective(pair, loss))
    elif gradients > allowed and not drawn_otherwise:
        findings.append(_other_gradient(layer, gradients, ratio, scaled))
    return Compared(tuple(findings), lines)


def _not_alike(pair: Pair) -> str | None:
    if "smoke.model.initial_hash" not in pair.run.config or "smoke.model.initial_hash" not in pair.base.config:
        return "needs two smoke runs"
    if facts.initial_weights_differ(pair.run, pair.base):
        return "the first weights differ"
    if not facts.knows(pair.run, facts.BATCH) or facts.first_difference(pair.run, pair.base, facts.BATCH) == 0:
        return "the first batch differs"
    if facts.first_difference(pair.run, pair.base, facts.RANDOM) == 0:
        # The order of the samples may be the same, and what augments them drawn elsewhere (in a loader's workers).
        inputs = [run.get("smoke/input_hash") for run in (pair.run, pair.base)]
        if inputs[0] is not None and inputs[1] is not None and inputs[0].value[0] != inputs[1].value[0]:
            return "the first batch differs, and so do the random numbers that may have augmented it"
    if pair.run.first_step != pair.base.first_step:
        return "the runs begin at different steps"
    return None


def _random(pair: Pair) -> bool:
    """Tell whether the first loss hangs on random numbers that may have been drawn in another order."""
    if facts.masks_differ(pair.run, pair.base) is False:
        return False
    drawn = (run.config.get("smoke.first_step_random") is True for run in (pair.run, pair.base))
    rated = max(_rate(pair.run), _rate(pair.base)) > 0
    return rated or any(drawn) or facts.first_difference(pair.run, pair.base, facts.RANDOM) == 0


def _rate(run: Run) -> float:
    """Return the largest dropout rate, of modules and of functions."""
    return max((*facts.values(run, "smoke.model.dropout"), *facts.values(run, "smoke.dropout_used")), default=0.0)


def _same_draws(pair: Pair) -> bool:
    """Tell whether as many random numbers were drawn by the end of the step."""
    known = facts.knows(pair.run, facts.RANDOM)
    return known and facts.first_difference(pair.run, pair.base, facts.RANDOM) != 0


def _beyond_masks(pair: Pair, loss: float, params: Params) -> bool:
    """Tell whether loss or gradients moved by more than other dropout masks move them."""
    rate = _rate(pair.base)
    if not rate:
        return False  # what other random numbers do is not known
    matrices = {p.name for p in facts.parameters(pair.base) if len(p.shape) > 1}
    off = [off for name, off, *_ in _differences(pair) if name in matrices]
    typical = float(np.median(off)) if len(off) >= LEAST_MATRICES else 0.0
    few = max(1.0, sqrt(ENOUGH / _samples(pair.run)))
    return loss > few * (params.dropped + rate) or typical > few * (params.profile + 0.7 * rate)


def _samples(run: Run) -> float:
    samples = run.get("smoke/samples")
    return float(ENOUGH) if samples is None else max(1.0, float(samples.value[0]))


def _relative(mine: Series | None, theirs: Series | None) -> float:
    if mine is None or theirs is None:
        return 0.0
    a, b = float(mine.value[0]), float(theirs.value[0])
    if not (isfinite(a) and isfinite(b)):
        return 0.0 if isfinite(a) == isfinite(b) else float("inf")
    return abs(a - b) / max(abs(b), 1e-12)


def _gradients(pair: Pair) -> tuple[float, float, str | None]:
    """Return the largest relative difference of a gradient norm, its ratio and its tensor."""
    found = max(_differences(pair), key=lambda one: one[1], default=("", 0.0, 1.0, None))
    return found[1:] if found[1] > 0.0 else (0.0, 1.0, None)


def _differences(pair: Pair) -> Iterator[tuple[str, float, float, str | None]]:
    """Yield of each matched tensor its baseline name, the difference of its gradient norms, their ratio, its name."""
    whole = pair.base.get("train/grad_norm")
    floor = FLOOR * float(whole.value[0]) if whole is not None and isfinite(float(whole.value[0])) else 0.0
    for theirs, mine in match(facts.parameters(pair.run), facts.parameters(pair.base)).items():
        a, b = first_norm(pair.run, mine, "grad_l2_norm"), first_norm(pair.base, theirs, "grad_l2_norm")
        if a is not None and b is not None and isfinite(a) and isfinite(b):
            yield theirs, abs(a - b) / max(b, floor, 1e-30), a / b if b else float("inf"), mine


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
