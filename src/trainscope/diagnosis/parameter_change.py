"""parameter_change: parameters that learned in the baseline and do not now, or that are no longer there.

What it finds
    Tensors that moved in the baseline and stand still now (frozen, in no optimizer, without gradient, without
    tokens), another number of trainable parameters (a head that is no longer tied, experts that are one object),
    first weights of another scale, and weight decay that reaches other parameters (norms and biases, or none),
    and parameters of another type (bfloat16 for float32).
Algorithm
    Exact, from two smoke runs. Tensors are matched by name, else by their first bytes, else by shape and order, so
    that a renamed or moved module is no finding. The scale of the first weights is compared where the norm of a
    matched tensor is off by more than ``scale``.
Parameters
    scale: largest ratio, either way, of the norm of a tensor's first weights.
    numel: least numbers in a tensor for that.
False positives
    Parameters that are frozen, added or removed on purpose: accept it as the new baseline. New parameters that are
    frozen and unused are none.
Misses
    Models of more than 4096 tensors, whose list is not kept.
Reference
    open-unlearning#178, microsoft/lora#26 (parameters that stopped learning after a change).
"""

from __future__ import annotations

from dataclasses import dataclass

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Lack, Skipped, number
from trainscope.detectors.parameters_not_training import is_expert, listed
from trainscope.diagnosis.base import Compared, Comparer, Comparison, Pair
from trainscope.diagnosis.matching import match

SHOWN = 4


@dataclass(frozen=True, slots=True)
class Params:
    """What counts as another initialisation."""

    scale: float = 1.5
    """Another seed moves the norm of 1000 numbers by 2 %."""
    numel: int = 256
    """Smaller tensors vary too much with the seed."""


def compare(pair: Pair, params: Params) -> Compared | Skipped:
    """Compare what learns."""
    mine, theirs = facts.parameters(pair.run), facts.parameters(pair.base)
    if not mine or not theirs:
        return Skipped("needs the parameters of two smoke runs", kind=Lack.RECORDING)
    matched = match(mine, theirs)
    findings = [
        _stopped(pair, matched),
        _count(pair),
        _scale(pair, matched, params),
        _decay(pair, matched),
        _dtype(pair),
    ]
    moving = len(theirs) - len(facts.at_rest(pair.base) & {p.name for p in theirs})
    line = Comparison(
        "parameters",
        "changed" if any(findings) else "same",
        None,
        float(len(mine)),
        (float(moving), float(len(theirs))),
    )
    return Compared(tuple(f for f in findings if f is not None), (line,))


def _stopped(pair: Pair, matched: dict[str, str]) -> Finding | None:
    stopped = _names_of_stopped(pair, matched)
    if not stopped:
        return None
    why = {
        "frozen (requires_grad is false)": facts.names(pair.run, "smoke.frozen"),
        "in no optimizer": facts.names(pair.run, "smoke.not_in_optimizer"),
        "without a gradient": facts.names(pair.run, "smoke.never_gradient"),
        "never changed by a step": facts.names(pair.run, "smoke.never_moved"),
    }
    reason = next(text for text, names in why.items() if stopped[0] in names)
    # Which experts get tokens hangs on the routing; without a pair it may differ between two good runs.
    certain = pair.pairing.exact or not all(is_expert(name) for name in stopped)
    return Finding(
        detector="parameter_change",
        severity=Severity.ERROR if certain else Severity.WARNING,
        title="Parameters no longer learn",
        message=(
            f"{len(stopped)} parameter tensor{'s' if len(stopped) > 1 else ''} that learned in the baseline "
            f"{'are' if len(stopped) > 1 else 'is'} now {reason}: {listed(stopped, SHOWN)}."
        ),
        metric="parameters/stopped",
        layer=stopped[0] if len(stopped) == 1 else None,
        evidence={"tensors": len(stopped)},
        fixes=(
            "Check requires_grad, the optimizer's parameter groups, and no_grad or detach on the way to the loss.",
            "If they are meant to stand still, save a new baseline.",
        ),
    )


def _names_of_stopped(pair: Pair, matched: dict[str, str]) -> tuple[str, ...]:
    """Return the tensors that learned in the baseline and stand still now."""
    rested, rests = facts.at_rest(pair.base), facts.at_rest(pair.run)
    learned = (matched[p.name] for p in facts.parameters(pair.base) if p.name not in rested and p.name in matched)
    return tuple(name for name in learned if name in rests)


def _count(pair: Pair) -> Finding | None:
    key = "smoke.model.trainable_numel"
    mine, theirs = facts.number(pair.run, key), facts.number(pair.base, key)
    if mine is None or theirs is None or mine == theirs:
        return None
    frozen = facts.number(pair.run, "smoke.model.numel")
    if frozen is not None and frozen == facts.number(pair.base, "smoke.model.numel"):
        return None  # As many parameters, some of them frozen: said above, by name.
    return Finding(
        detector="parameter_change",
        severity=Severity.WARNING,
        title="Another number of parameters",
        message=f"The model has {mine:.0f} trainable numbers, in the baseline {theirs:.0f}.",
        metric="parameters/count",
        evidence={"trainable": mine, "baseline": theirs},
        fixes=("Check tied weights and modules that are built once and used several times.",),
    )


def _scale(pair: Pair, matched: dict[str, str], params: Params) -> Finding | None:
    if not facts.initial_weights_differ(pair.run, pair.base):
        return None
    off = []
    for parameter in facts.parameters(pair.base):
        name = matched.get(parameter.name)
        if name is None or parameter.numel < params.numel:
            continue
        mine, theirs = first_norm(pair.run, name), first_norm(pair.base, parameter.name)
        if mine is not None and theirs and not 1 / params.scale <= mine / theirs <= params.scale:
            off.append((name, mine / theirs))
    if not off:
        return None
    worst = max(off, key=lambda one: max(one[1], 1 / one[1] if one[1] else float("inf")))
    return Finding(
        detector="parameter_change",
        severity=Severity.WARNING,
        title="First weights of another scale",
        message=(
            f"{len(off)} tensor{'s' if len(off) > 1 else ''} start{'' if len(off) > 1 else 's'} at another scale than "
            f"in the baseline: {worst[0]} at {number(worst[1])} times its norm."
        ),
        metric="parameters/scale",
        layer=worst[0],
        evidence={"ratio": worst[1], "tensors": len(off), "limit": params.scale},
        fixes=("Check that the initialisation still runs, and on the modules it is for.",),
    )


def _decay(pair: Pair, matched: dict[str, str]) -> Finding | None:
    """Compare how many numbers decay; only of models of one size, whatever the decay is.

    Numbers that no longer learn no longer decay either, which is said of them already.
    """
    size, decayed, vectors = "smoke.model.trainable_numel", "smoke.decayed", "smoke.decayed_vectors"
    mine, theirs = facts.number(pair.run, decayed), facts.number(pair.base, decayed)
    same_size = facts.number(pair.run, size) == facts.number(pair.base, size)
    if mine is None or theirs is None or mine == theirs or not same_size:
        return None
    stopped = set(_names_of_stopped(pair, matched))
    if 0 < theirs - mine <= sum(p.numel for p in facts.parameters(pair.run) if p.name in stopped):
        return None
    flat = [facts.number(run, vectors) or 0.0 for run in (pair.run, pair.base)]
    return Finding(
        detector="parameter_change",
        severity=Severity.WARNING,
        title="Weight decay reaches other parameters",
        message=(
            f"Weight decay acts on {mine:.0f} trained numbers, {flat[0]:.0f} of them in biases and norms; in the "
            f"baseline on {theirs:.0f}, {flat[1]:.0f} of them in biases and norms."
        ),
        metric="parameters/decayed",
        evidence={"decayed": mine, "baseline": theirs},
        fixes=("Check the optimizer's parameter groups; if the change is meant, save a new baseline.",),
    )


def _dtype(pair: Pair) -> Finding | None:
    """Compare the numbers' type, of runs on the same kind of device."""
    mine, theirs = facts.provenance(pair.run, "dtype"), facts.provenance(pair.base, "dtype")
    same_device = facts.provenance(pair.run, "device") == facts.provenance(pair.base, "device")
    if mine is None or theirs is None or mine == theirs or not same_device:
        return None
    return Finding(
        detector="parameter_change",
        severity=Severity.WARNING,
        title="Parameters of another type",
        message=f"Most parameters are {mine}, in the baseline {theirs}.",
        metric="parameters/dtype",
        evidence={"dtype": str(mine), "baseline": str(theirs)},
        fixes=("Check where the model is cast; optimizers need float32 weights, or masters of them.",),
    )


def first_norm(run: Run, layer: str, metric: str = "weight_l2_norm") -> float | None:
    """Return a layer's statistic at the first step at which it was recorded, None if it never was."""
    if run.layers is None or layer not in run.layers.layers():
        return None
    series = run.layers.series(layer, metric)
    return float(series.value[0]) if len(series) else None


COMPARER = Comparer("parameter_change", "Parameters no longer learn", ("smoke facts",), Params(), compare)
