"""The rules of faults that a run has all along: what a detector counted exactly, and what a symptom hints at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trainscope.core import facts
from trainscope.core.run import FloatArray, Run
from trainscope.diagnosis.evidence import Case, Evidence, because, headline
from trainscope.diagnosis.signs import Cause, Sign


@dataclass(frozen=True, slots=True)
class Fault:
    """What a detector's finding means."""

    cause: Cause
    strength: float
    title: str | None = None
    """A sentence; None takes the finding's own words."""


EXACT: Mapping[str, Fault] = {
    "stale_gradients": Fault(Cause.STRUCTURE, 4.0, "gradients are not cleared as they should be"),
    "parameters_not_training": Fault(Cause.STRUCTURE, 4.0),
    "repeated_batches": Fault(Cause.STRUCTURE, 5.0, "the loader gives the same batches over and over"),
    "step_accounting": Fault(Cause.STRUCTURE, 4.0, "steps and backward passes do not match"),
    "eval_mode": Fault(Cause.STRUCTURE, 4.0, "the model trains in evaluation mode"),
    "rank_divergence": Fault(Cause.STRUCTURE, 4.0, "processes that should agree do not"),
    "clipping": Fault(Cause.STRUCTURE, 4.0, "the gradient is not clipped as it should be"),
    "scheduler_pace": Fault(Cause.SCHEDULE, 4.0, "the scheduler steps more often than the optimizer"),
    "lr_zero": Fault(Cause.SCHEDULE, 4.0, "the learning rate is 0"),
    "router": Fault(Cause.ROUTING, 4.0, "the router does not spread its tokens"),
    "learning_rate_change": Fault(Cause.SCHEDULE, 3.0, "the learning rate is not that of the baseline"),
    "parameter_change": Fault(Cause.STRUCTURE, 4.0),
    "first_step": Fault(Cause.STRUCTURE, 3.0),
    "setting_change": Fault(Cause.OPTIMIZER, 2.0, "optimizer or dropout are not set as in the baseline"),
    "data_change": Fault(Cause.STRUCTURE, 2.0, "the batches are not those of the baseline"),
}
"""Faults of which a detector is sure."""
SHOWS: Mapping[str, frozenset[str]] = {
    "parameter_change": frozenset({"parameters_not_training"}),
    "first_step": frozenset(
        {
            "parameters_not_training",
            "parameter_change",
            "stale_gradients",
            "step_accounting",
            "eval_mode",
            "non_finite",
            "non_finite_origin",
        }
    ),
    "learning_rate_change": frozenset({"scheduler_pace", "lr_zero", "lr_schedule"}),
    "data_change": frozenset({"repeated_batches"}),
    "setting_change": frozenset({"eval_mode"}),
}
"""Comparison to the faults that it shows against a baseline: beside one of them it is evidence, and no other fault."""
SYMPTOMS: Mapping[str, Fault] = {
    "weight_norm": Fault(Cause.OPTIMIZER, 3.5),
    "half_precision": Fault(Cause.NUMERICS, 3.0, "half precision runs out of range"),
    "loss_scale": Fault(Cause.NUMERICS, 2.0, "gradients overflow again and again"),
    "update_norm": Fault(Cause.OPTIMIZER, 1.0),
    "stale_moments": Fault(Cause.OPTIMIZER, 1.0, "Adam's second moment was stale"),
    "attention_logits": Fault(
        Cause.SCHEDULE, 3.0, "the learning rate is too high for this model: its attention saturates"
    ),
    "dead_units": Fault(Cause.STRUCTURE, 2.0, "most units of a layer are dead"),
    "unigram_floor": Fault(
        Cause.STRUCTURE, 2.0, "inputs and labels do not belong together, or the inputs never arrive"
    ),
    "loss_floor": Fault(Cause.STRUCTURE, 2.5, "the answer leaks into the input"),
    "initial_loss": Fault(Cause.STRUCTURE, 1.0, "the first loss is not that of a fresh model"),
    "plateau": Fault(Cause.STRUCTURE, 1.0, "nothing is learned"),
    "grad_vanishing": Fault(Cause.STRUCTURE, 1.5, "the gradient does not reach the weights"),
    "oscillation": Fault(Cause.SCHEDULE, 1.5, "the learning rate is too high for this batch size"),
    "overfitting": Fault(Cause.GENERALIZATION, 2.0, "it fits the training data and nothing else"),
    "train_eval_gap": Fault(Cause.GENERALIZATION, 2.0, "it fits the training data and nothing else"),
}
"""What else a run shows; where an exact fault is known, that is the cause, and these are its evidence."""
DOWNSTREAM = 0.15
"""Factor on a symptom beside an exact fault."""
HOT = 3.0
"""The first twentieth of a run starts hot if its learning rate is this many times the largest after it."""


def standing(e: Evidence, *, is_explained: bool) -> list[Case]:
    """Return the cases of faults that hold all along, and of symptoms that stand for themselves.

    Parameters
    ----------
    is_explained : bool
        Whether a sudden fault explains the symptoms already.
    """
    ids = {s.detector for s in e.signs}
    exact = [
        _case(e, s, EXACT[s.detector])
        for s in e.signs
        if s.detector is not None and s.detector in EXACT and not ids & SHOWS.get(s.detector, frozenset())
    ]
    cases = exact + [case for case in (hot_start(e), no_warm_up(e), never_generalised(e)) if case is not None]
    sure = bool(cases) or is_explained
    for sign in e.signs:
        if sign.detector is not None and sign.detector in SYMPTOMS:
            fault = SYMPTOMS[sign.detector]
            cases.append(_case(e, sign, fault, DOWNSTREAM if sure else 1.0))
    return cases


def _case(e: Evidence, sign: Sign, fault: Fault, factor: float = 1.0) -> Case:
    finding = e.findings.get(sign.detector or "")
    runs_away = finding is not None and finding.title == "Weights run away"
    return Case(
        Cause.SCHEDULE if runs_away else fault.cause,
        fault.strength * factor,
        fault.title or headline(sign),
        because(sign),
        where=sign.where or _parameter(e.run, sign),
        fixes=() if finding is None else finding.fixes,
    )


def _parameter(run: Run, sign: Sign) -> str | None:
    """Return the first parameter that a finding about many of them means."""
    if sign.detector not in {"parameters_not_training", "parameter_change"}:
        return None
    for key in ("smoke.not_in_optimizer_used", "smoke.never_gradient", "smoke.never_moved", "smoke.frozen"):
        names = facts.names(run, key)
        if names:
            return names[0]
    return None


def hot_start(e: Evidence) -> Case | None:
    """Judge a learning rate that begins far above its later peak: no finding says so, but what it destroyed stays."""
    rate = e.run.get("learning_rate")
    if rate is None or len(rate) < 40 or not e.signs:
        return None
    early = max(2, len(rate) // 20)
    before, after = float(np.nanmax(rate.value[:early])), float(np.nanmax(rate.value[early:]))
    if not before > HOT * after > 0 or not _settles(rate.value[: early + 1], after):
        return None
    step = int(rate.step[int(np.nanargmax(rate.value[:early]))])
    return Case(
        Cause.SCHEDULE,
        4.0,
        f"the run began with a learning rate of {before:.3g} (step {step}), {before / after:.3g} times its later peak",
        because(*e.signs[:2]),
        fixes=("Check the order of the scheduler's first step, and of what sets the first learning rate.",),
    )


def _settles(start: FloatArray, after: float) -> bool:
    """Tell whether a rate falls from its hot start at once and stays near where it fell to.

    A schedule that decays every few steps begins far above the rest of it too, and is not set wrongly at the start.
    """
    falls = np.flatnonzero(start[:-1] > HOT * start[1:])
    return bool(len(falls)) and after > 0.5 * float(start[falls[0] + 1])


def no_warm_up(e: Evidence) -> Case | None:
    """Judge a run that starts at its peak learning rate."""
    sign = e.detector("lr_schedule")
    if sign is None or not sign.event.startswith("starts at its peak"):
        return None
    finding = e.findings.get("lr_schedule")
    return Case(
        Cause.SCHEDULE,
        3.0,
        f"the learning rate {sign.event}",
        because(sign),
        fixes=() if finding is None else finding.fixes,
    )


def never_generalised(e: Evidence) -> Case | None:
    """Judge a training loss near 0 beside an evaluation that never was better than at its start.

    Who learns a small data set by heart learns something of use first: there the evaluation falls before it rises.
    """
    sign = e.detector("train_eval_gap", "overfitting", "loss_floor")
    held_out = e.run.get("smoke/eval_cross_entropy") or e.run.get("eval/loss")
    loss = e.run.get("smoke/cross_entropy") or e.run.get("train/loss")
    if sign is None or held_out is None or loss is None or len(held_out) < 3 or e.detector("repeated_batches"):
        return None
    first, last = float(loss.value[0]), float(np.median(loss.value[-max(3, len(loss) // 10) :]))
    best = int(np.argmin(held_out.value))
    if best > 1 or not (last < 0.1 * first < first and float(held_out.value[best]) > 0.6 * first):
        return None
    return Case(
        Cause.STRUCTURE,
        4.0,
        f"training falls to {last:.3g} while evaluation never was below {float(held_out.value[best]):.3g}: the answer "
        "leaks into the input, or only a few batches are ever seen",
        because(sign),
        fixes=(
            "Check that labels are shifted by one, the mask is causal, and no target is among the features.",
            "Feed random inputs: the training loss must then not fall.",
            "Check how much of the data the sampler reaches.",
        ),
    )
