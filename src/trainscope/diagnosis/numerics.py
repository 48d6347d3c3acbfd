"""The rules of numbers that went wrong by themselves: in one layer's weights, in one layer's gradient, or not finite.

A docstring here is the pattern; a function returns its case, or None where the pattern is not there.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainscope.core.metrics import LOSS_KINDS, kind
from trainscope.diagnosis.evidence import Case, Evidence, absent, because, changed_before, parts, said, usual_ratio
from trainscope.diagnosis.looking import ITSELF, STOPPED
from trainscope.diagnosis.signs import Cause, Sign, Stage

QUIET = 1.5
"""Ratio of the median layer's gradient to its usual one, up to which the others are quiet. A bad batch raises all of
them together (measured: 3 to 10 times), a fault inside one layer's backward only that one."""
BURST = 10.0
"""Ratio to the usual from which one layer's update is no noise; Adam bounds it to a few times the learning rate."""
_WRITTEN = (
    "Look for code that writes to weights outside the optimizer; if there is none, suspect the hardware.",
    "Go back to a checkpoint before this step and run it again: the same step must give the same weights.",
)


def itself(e: Evidence) -> Case | None:
    """Judge weights that change by more than the update (exact)."""
    changed = e.all_of(ITSELF)
    loss = e.loss
    if not changed:
        return lone_update(e)
    if loss is not None and changed[0].step > loss.step:
        return None
    first = max(parts(changed, changed[0].step, ITSELF), key=lambda s: s.score)
    return Case(
        Cause.NUMERICS,
        5.0,
        f"the weights of {first.where} changed by themselves at step {first.step}: {first.event}",
        because(e.trouble, loss),
        where=first.where,
        fixes=_WRITTEN,
    )


def lone_update(e: Evidence) -> Case | None:
    """Judge an update that is ten times as large in one layer alone, while its gradient is as usual.

    The Python recorder takes the update from the weights before two steps, so that what else writes to them is in it.
    """
    updates, table = e.all_of("update_ratio"), e.run.layers
    if not updates or table is None or e.rate_leap is not None:
        return None
    step = updates[0].step
    first = max(parts(updates, step, "update_ratio"), key=lambda s: s.score)
    others, own = usual_ratio(table, "update_ratio", step), usual_ratio(table, "grad_l2_norm", step, first.where)
    much = usual_ratio(table, "update_ratio", step, first.where)
    if others is None or others > QUIET or own is None or own > BURST or much is None or much < BURST:
        return None
    if e.trouble is not None and e.trouble.step <= step:
        return None
    return Case(
        Cause.NUMERICS,
        4.5,
        f"the weights of {first.where} changed by themselves after step {step}: by {much:.3g} times their usual "
        f"update, at {own:.2g} times their usual gradient",
        because(first, e.trouble, e.loss),
        where=first.where,
        fixes=_WRITTEN,
    )


_WHAT = {
    Stage.SCHEDULE: "learning rate",
    Stage.GRADIENT: "gradient",
    Stage.EVAL: "evaluation loss",
    Stage.UPDATE: "update",
}

_OF_THE_UPDATE = (
    "Look for code that writes to weights outside the optimizer; the gradient was still finite.",
    "If there is none, look at the optimizer: an epsilon that rounds to 0, moments that overflow in half precision.",
)
_OF_THE_GRADIENT = (
    "Check the loss scale: it must fall when a gradient is infinite, and the step must be skipped.",
    "Use bf16 instead of fp16; guard divisions, logarithms and means over sets that may be empty.",
)
_NO_HEALING = "Weights that were updated with NaN do not heal: go back to a checkpoint before this step."


def not_finite(e: Evidence) -> Case | None:
    """Judge NaN and infinity; they are the cause where nothing else went wrong before."""
    found = e.detector("non_finite_origin", "non_finite", "zero_loss") or next(
        (s for s in e.signs if s.event == STOPPED), None
    )
    if found is None:
        return None
    bad = [s for s in e.signs if s.event == STOPPED or s.detector in {"non_finite", "non_finite_origin"}]
    first = min(bad, key=lambda s: (s.step, s.stage), default=found)
    before = next((s for s in e.signs if s.step < first.step and s.stage in (Stage.SCHEDULE, Stage.DATA)), None)
    grew = next((s for s in e.signs if s.step < first.step and kind(s.signal) in LOSS_KINDS), None)
    title, where = _born(e, bad, first)
    return Case(
        Cause.NUMERICS,
        1.0 if before is not None else 1.5 if grew is not None else 4.0,
        title,
        because(first, *bad[1:3], before, grew),
        absent(e, Stage.GRADIENT, Stage.ACTIVATION),
        where,
        (*(_OF_THE_UPDATE if title.startswith("the update") else _OF_THE_GRADIENT), _NO_HEALING),
    )


def _born(e: Evidence, bad: Sequence[Sign], first: Sign) -> tuple[str, str | None]:
    """Return what stopped being finite, and where.

    What watched the step knows it exactly; all parameters behind that place are not finite at the same step.
    """
    if not bad:
        return f"the loss is exactly 0 from step {first.step} on, as some trainers log a NaN", None
    origin = next((s for s in bad if s.detector == "non_finite_origin" and s.step == first.step), None)
    if origin is not None:
        return said(origin).partition("; ")[0], origin.where
    where = next((s.where for s in bad if s.where is not None and not e.is_everywhere(s)), None)
    at_once = {s.stage for s in bad if s.step == first.step} & {Stage.LOSS, Stage.GRADIENT}
    what = first.stage if first.stage is Stage.SCHEDULE else max(at_once, default=first.stage)
    place = "" if where is None else f", first in {where}"
    return f"the {_WHAT.get(what, 'loss')} stopped being finite at step {first.step}{place}", where


def one_gradient(e: Evidence) -> Case | None:
    """Judge a gradient that bursts in one place while those of the other layers, and the loss, are as usual."""
    bursts = e.all_of("grad_l2_norm")
    if not bursts or e.run.layers is None or e.first(Stage.DATA) is not None:
        return None
    step, loss = bursts[0].step, e.loss
    if changed_before(e, step) is not None or (loss is not None and loss.step <= step):
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
