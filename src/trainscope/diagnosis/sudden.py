"""The rules of faults that strike at a step. Each asks for its signs in their physical order.

A docstring here is the pattern; a function returns its case, or None where the pattern is not there.
"""

from __future__ import annotations

from trainscope.core.metrics import LOSS_KINDS, kind
from trainscope.diagnosis.evidence import Case, Evidence, absent, because, fell_at_once, parts, said, usual_ratio
from trainscope.diagnosis.looking import ITSELF
from trainscope.diagnosis.signs import Cause, Sign, Stage

QUIET = 1.5
"""Ratio of the median layer's gradient to its usual one, up to which the others are quiet. A bad batch raises all of
them together (measured: 3 to 10 times), a fault inside one layer's backward only that one."""
REWIND = "Go back at least 100 steps before step {step} and leave these batches out on replay."


def bad_batch(e: Evidence) -> Case | None:
    """Judge a batch at whose very step loss and gradient rise, while nothing moved before."""
    odd, trouble = e.first(Stage.DATA), e.trouble
    if trouble is None:
        return None if odd is None or odd.detector != "bad_batch" else _harmless(odd)
    if _changed_before(e, trouble.step):
        return None
    if odd is not None and odd.detector in (None, "bad_batch") and 0 <= trouble.step - odd.step <= 1:
        return Case(
            Cause.DATA,
            4.0 if _same_step(e, odd.step) else 3.0,
            f"the batch of step {odd.step} is unlike those before it: {said(odd)}",
            because(odd, trouble, e.loss),
            fixes=(REWIND.format(step=odd.step), "Look at the batch, and filter what made it."),
        )
    loss = e.loss
    if loss is None or odd is not None or not _came_back(e) or not _same_step(e, loss.step):
        return None
    gone = absent(e, Stage.DATA, Stage.SCHEDULE, Stage.UPDATE, Stage.GRADIENT)
    strength = 0.7 if e.has_batches else 2.0 if e.has("learning_rate") and e.has("train/grad_norm") else 1.0
    at_once = "loss and gradient rise at the same step" if e.first(Stage.GRADIENT) else "the loss rises at one step"
    return Case(
        Cause.DATA,
        strength,
        f"the batch of step {loss.step} may be bad: {at_once}, and nothing moved before",
        because(loss, e.first(Stage.GRADIENT)),
        gone,
        fixes=("Look at the batch of this step.", REWIND.format(step=loss.step)),
    )


def _harmless(odd: Sign) -> Case:
    return Case(
        Cause.DATA,
        2.0,
        f"the batch of step {odd.step} is unlike those before it, though it did no harm that shows",
        because(odd),
        fixes=("Look at the batch, and filter what made it.",),
    )


def _same_step(e: Evidence, step: int) -> bool:
    """Tell whether the gradient rose with the loss, or nothing is known of it."""
    gradient = e.first(Stage.GRADIENT)
    if gradient is None:
        return not e.has("train/grad_norm")
    return gradient.step == step


def _came_back(e: Evidence) -> bool:
    return e.detector("divergence", "loss_shift", "non_finite") is None


def _changed_before(e: Evidence, step: int) -> Sign | None:
    """Return what moved before a step and was no harm yet: learning rate, update, weights."""
    for sign in e.signs:
        if sign.signal == ITSELF and sign.step <= step:
            return sign
        leap = sign.stage is Stage.SCHEDULE and sign is e.rate_leap and sign.step <= step
        if leap or (sign.stage is Stage.UPDATE and sign.step < step):
            return sign
    return None


def rate_leap(e: Evidence) -> Case | None:
    """Judge a learning rate that leaps before, or with, everything else."""
    leap = e.rate_leap or e.detector("lr_schedule")
    if leap is None or leap.event.startswith("starts at its peak"):
        return None
    trouble = e.trouble
    late = trouble is not None and trouble.step < leap.step
    update = e.first(Stage.UPDATE)
    return Case(
        Cause.SCHEDULE,
        0.5 if late else 4.0,
        said(leap),
        because(leap, update, trouble, e.loss),
        fixes=(
            "Restore the scheduler's state where the run was resumed, and check what else sets the learning rate.",
            "Skipping batches does not help: go back to a checkpoint before this step and resume with the old rate.",
        ),
    )


def lost_state(e: Evidence) -> Case | None:
    """Judge a second moment of Adam that falls faster than it can decay."""
    found = e.detector("optimizer_state")
    if found is None:
        found = next((s for s in e.all_of("optimizer/v_norm") if fell_at_once(e.run, s.signal, s.step, 0.5)), None)
    if found is None:
        return None
    return Case(
        Cause.OPTIMIZER,
        5.0 if found.detector else 4.0,
        f"the optimizer lost its state at step {found.step}",
        because(found, e.trouble),
        fixes=(
            "Load the optimizer's state dict with the model's on a resume.",
            "Build the optimizer once, before the loop.",
        ),
    )


def stale_moments(e: Evidence) -> Case | None:
    """Judge an update that grows before gradient and loss do, at an unchanged learning rate."""
    trouble = e.trouble
    if trouble is None or e.rate_leap is not None or e.all_of(ITSELF):
        return None
    update = next((s for s in e.signs if s.stage is Stage.UPDATE and s.signal in _UPDATES), None)
    if update is None or update.step >= trouble.step or e.first(Stage.DATA) is not None:
        return None
    rms = next((s for s in e.all_of("rms_t") if s.step < trouble.step), None)
    title = "the update grew before gradient and loss, at an unchanged learning rate"
    return Case(
        Cause.OPTIMIZER,
        3.0 if rms is not None else 2.0,
        title if rms is None else "Adam's second moment was stale: the update grew before gradient and loss",
        because(rms, update, trouble, e.loss),
        absent(e, Stage.SCHEDULE, Stage.DATA),
        (rms or update).where,
        (
            "Lower Adam's beta2 (0.95), or clip the update (StableAdamW).",
            "Lower the learning rate; skipping batches did not shorten such recoveries in public runs.",
        ),
    )


_UPDATES = frozenset({"update_ratio", "rms_t", "optimizer/update_norm"})


def itself(e: Evidence) -> Case | None:
    """Judge weights that change by more than the update (exact)."""
    changed = e.all_of(ITSELF)
    loss = e.loss
    if not changed or (loss is not None and changed[0].step > loss.step):
        return None
    first = max(parts(changed, changed[0].step, ITSELF), key=lambda s: s.score)
    return Case(
        Cause.NUMERICS,
        5.0,
        f"the weights of {first.where} changed by themselves at step {first.step}: {first.event}",
        because(e.trouble, loss),
        where=first.where,
        fixes=(
            "Look for code that writes to weights outside the optimizer; if there is none, suspect the hardware.",
            "Go back to a checkpoint before this step and run it again: the same step must give the same weights.",
        ),
    )


def not_finite(e: Evidence) -> Case | None:
    """Judge NaN and infinity; they are the cause where nothing else went wrong before."""
    found = e.detector("non_finite_origin", "non_finite", "zero_loss") or next(
        (s for s in e.signs if s.event == "stopped being finite"), None
    )
    if found is None:
        return None
    bad = [s for s in e.signs if s.event == "stopped being finite" or s.detector in {"non_finite", "non_finite_origin"}]
    first = min(bad, key=lambda s: (s.step, s.stage), default=found)
    before = next((s for s in e.signs if s.step < first.step and s.stage in (Stage.SCHEDULE, Stage.DATA)), None)
    grew = next((s for s in e.signs if s.step < first.step and kind(s.signal) in LOSS_KINDS), None)
    where = next((s.where for s in bad if s.where is not None), None)
    place = "" if where is None else f", first in {where}"
    gradient = first.stage is Stage.GRADIENT
    return Case(
        Cause.NUMERICS,
        1.0 if before is not None else 1.5 if grew is not None else 4.0,
        f"the {'gradient' if gradient else 'loss'} stopped being finite at step {first.step}{place}",
        because(first, *bad[1:3], before, grew),
        absent(e, Stage.GRADIENT, Stage.ACTIVATION),
        where,
        (
            "Check the loss scale: it must fall when a gradient is infinite, and the step must be skipped.",
            "Use bf16 instead of fp16; guard divisions, logarithms and means over sets that may be empty.",
            "Weights that were updated with NaN do not heal: go back to a checkpoint before this step.",
        ),
    )


def one_gradient(e: Evidence) -> Case | None:
    """Judge a gradient that bursts in one place while those of the other layers, and the loss, are as usual."""
    bursts = e.all_of("grad_l2_norm")
    if not bursts or e.run.layers is None or e.first(Stage.DATA) is not None:
        return None
    step, loss = bursts[0].step, e.loss
    if _changed_before(e, step) is not None or (loss is not None and loss.step <= step):
        return None
    others = usual_ratio(e.run.layers, "grad_l2_norm", step)
    if others is None or others > QUIET:
        return None
    first = max(parts(bursts, step, "grad_l2_norm"), key=lambda s: s.score)
    return Case(
        Cause.NUMERICS,
        3.5,
        f"the gradient of {first.where} burst by itself at step {step}: it {first.event}, "
        f"while half of the layers stayed under {others:.2g} times their usual",
        because(first, e.first(Stage.UPDATE), loss),
        absent(e, Stage.DATA),
        first.where,
        (
            "Look at this layer's backward: a custom kernel, a division, an overflow in half precision.",
            "Clip the gradient norm; run the step again to see whether it repeats.",
        ),
    )


def dead_units(e: Evidence) -> Case | None:
    """Judge units that die without a leap of the learning rate."""
    dead = e.all_of("act_dead_fraction")
    if not dead or e.rate_leap is not None:
        return None
    return Case(
        Cause.STRUCTURE,
        1.5,
        f"units of {dead[0].where} died",
        because(*dead[:2]),
        where=dead[0].where,
        fixes=("Use an activation function that is never flat, or lower the learning rate.",),
    )


def load_collapse(e: Evidence) -> Case | None:
    """Judge one expert or slot that takes the load before the loss rises."""
    loads = e.all_of("shares")
    trouble = e.first(Stage.GRADIENT, Stage.LOSS)
    if not loads or (trouble is not None and loads[0].step > trouble.step):
        return None
    return Case(
        Cause.ROUTING,
        1.0 if e.rate_leap is not None else 3.0,
        f"{loads[0].where} sends most of its tokens to one expert: its largest share {loads[0].event}",
        because(*loads[:2], trouble),
        where=loads[0].where,
        fixes=("Raise the load-balancing loss, or add a z-loss on the router's logits.",),
    )
