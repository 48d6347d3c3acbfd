"""The rules of faults that strike at a step. Each asks for its signs in their physical order.

A docstring here is the pattern; a function returns its case, or None where the pattern is not there.
"""

from __future__ import annotations

from trainscope.diagnosis.evidence import (
    Case,
    Evidence,
    absent,
    because,
    changed_before,
    fell_at_once,
    headline,
    is_highest_at,
    said,
)
from trainscope.diagnosis.looking import ITSELF
from trainscope.diagnosis.numerics import lone_update, one_gradient
from trainscope.diagnosis.signs import Cause, Sign, Stage

SPIKES = ("spikes", "unrecovered_spike")
REWIND = "Go back at least 100 steps before step {step} and leave these batches out on replay."


def bad_batch(e: Evidence) -> Case | None:
    """Judge a batch at whose very step loss and gradient rise, while nothing moved before."""
    odd, trouble = e.first(Stage.DATA), e.trouble
    if trouble is None:
        return None if odd is None or odd.detector != "bad_batch" else _harmless(odd)
    if changed_before(e, trouble.step):
        return None
    if odd is not None and odd.detector in (None, "bad_batch") and 0 <= trouble.step - odd.step <= 1:
        return Case(
            Cause.DATA,
            4.0 if _same_step(e, odd.step) else 3.0,
            _unlike(odd),
            because(odd, trouble, e.loss),
            fixes=(REWIND.format(step=odd.step), "Look at the batch, and filter what made it."),
        )
    loss = e.loss
    if loss is None or odd is not None or not _is_spike(e, loss) or not _same_step(e, loss.step):
        return None
    gone = absent(e, Stage.DATA, Stage.SCHEDULE, Stage.UPDATE, Stage.GRADIENT)
    every = e.interval
    if every > 1:
        gone = (f"every step: the log has one point in {every}", *gone)
    known = every == 1 and e.has("learning_rate") and e.has("train/grad_norm")
    strength = 0.7 if e.has_batches else 2.0 if known else 1.0
    at_once = "loss and gradient rise at the same step" if e.first(Stage.GRADIENT) else "the loss rises at one step"
    return Case(
        Cause.DATA,
        strength,
        f"the batch of step {loss.step} may be bad: {at_once}, and nothing moved before",
        because(loss, e.first(Stage.GRADIENT)),
        gone,
        fixes=("Look at the batch of this step.", REWIND.format(step=loss.step)),
    )


def _unlike(odd: Sign) -> str:
    return headline(odd) if odd.detector else f"the batch of step {odd.step} is unlike those before it: {said(odd)}"


def _harmless(odd: Sign) -> Case:
    return Case(
        Cause.DATA,
        2.0,
        f"{_unlike(odd)}; it did no harm that shows",
        because(odd),
        fixes=("Look at the batch, and filter what made it.",),
    )


def _same_step(e: Evidence, step: int) -> bool:
    """Tell whether the gradient rose with the loss, be it too little to be a sign, or nothing is known of it."""
    gradient = e.first(Stage.GRADIENT)
    if gradient is None:
        return not e.has("train/grad_norm") or is_highest_at(e.run, "train/grad_norm", step)
    return gradient.step == step


def _is_spike(e: Evidence, loss: Sign) -> bool:
    """Tell whether the loss rose at one step, not over an epoch, and came back: it may be the batch's own."""
    came_back = e.detector("divergence", "loss_shift", "non_finite") is None
    return came_back and loss.detector in (None, *SPIKES) and e.run.x_axis != "epoch"


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
    if trouble is None or e.rate_leap is not None or e.all_of(ITSELF) or lone_update(e) is not None:
        return None
    updates = (s for s in e.signs if s.stage is Stage.UPDATE and s.signal in _UPDATES)
    update = next((s for s in updates if s.event.startswith("rose")), None)  # one that is NaN is another matter
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


def gradient_first(e: Evidence) -> Case | None:
    """Judge a gradient that grows steps before the loss: a bad batch would show in both at once."""
    gradient, loss = e.first(Stage.GRADIENT, rose=True), e.loss
    if gradient is None or loss is None or e.interval > 1 or loss.step <= gradient.step:
        return None
    before = [s for s in e.signs if s.step <= gradient.step and s.stage < Stage.GRADIENT]
    if before or one_gradient(e) is not None:
        return None
    return Case(
        Cause.OPTIMIZER,
        1.5,
        f"the gradient grew {loss.step - gradient.step} step{'s' if loss.step - gradient.step > 1 else ''} before the "
        "loss did: an unstable update rather than a bad batch",
        because(gradient, loss),
        absent(e, Stage.DATA, Stage.SCHEDULE, Stage.UPDATE),
        gradient.where,
        (
            "Clip the gradient norm, before the step and after unscaling.",
            "Lower the learning rate or Adam's beta2; go back to a checkpoint before this step.",
        ),
    )


_UPDATES = frozenset({"update_ratio", "rms_t", "optimizer/update_norm"})


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
