"""declared_schedule: the learning rate does not follow the schedule that the run declares.

What it finds
    A warm-up of another length than declared, a schedule that ends before or long after the declared number of
    steps, a scheduler that never steps, and, where the settings give its shape, any step at which the learning
    rate is off it; with the likely factor: micro-batches, processes, epochs.
Algorithm
    Exact. Of a smoke run, declared is, in this order: the parameters below, from the settings file; a trainer's
    own settings (transformers, Lightning); parsed arguments whose names say their unit (``--warmup-steps``,
    ``--max-steps``; ``--epochs`` times the batches of the training loader). What the scheduler says of itself (its
    ``T_max``, ``total_steps``, ``total_iters``, or ``num_training_steps`` of its function) over the pace at which
    it was stepped is its length in optimizer steps. Where none says so, a learning rate that falls along a line or
    half a cosine tells where it heads for 0 (a warning at most). Only the recorded steps are judged, and nothing is
    where nothing is declared. Of a log, the settings beside it are judged where they say a linear, cosine or constant
    schedule whole (``lr_scheduler_type``, ``learning_rate``, ``max_steps``, ``warmup_steps`` or ``warmup_ratio``): a
    tenth of the points must be off, and the usual mistake that fits them all is named.
Parameters
    deviation: largest relative difference from what is declared.
    warmup_steps: declared length of the warm-up in optimizer steps; 0 is not declared here.
    total_steps: declared length of the schedule in optimizer steps; 0 is not declared here.
    peak: declared highest learning rate; 0 is not declared here.
    shape: declared decay after the warm-up, ``constant``, ``linear`` or ``cosine`` to 0; empty is not declared.
False positives
    An option that is called ``warmup_steps`` and counts micro-batches or tokens. A schedule that is longer than the
    run by a factor of nobody's is left alone: runs are shortened on purpose. One that is shorter is an information
    where it is a function, which may have a floor, or where epochs are declared, which steps may cut short.
    Measured on 31 healthy smoke runs of seven training scripts: none.
Misses
    A learning rate that is set by hand and falls to a floor or in another shape, of which only the warm-up is
    judged, and a schedule in its own units that is wrong by a factor of nobody's. By hand, a decay that is over early
    by such a factor is an information, and a warm-up that is 0 until it jumps has the right length: both end in a
    learning rate of 0, which ``lr_zero`` finds.
Reference
    Lightning-AI/pytorch-lightning#1476, huggingface/diffusers#3954, accelerate#2926, transformers#24088: schedules
    over micro-batches or processes; accelerate#2124: a first step at the peak.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import FloatArray, Run, Series
from trainscope.detectors.base import Detector, Skipped, needs_smoke, number
from trainscope.detectors.engine.plan import FEWEST, SHARE, Plan, curve, explained, off, planned
from trainscope.detectors.engine.schedule import Schedule, read

RATE = "learning_rate"
SHAPES = ("", "constant", "linear", "cosine")


@dataclass(frozen=True, slots=True)
class Params:
    """What is declared, and how far off is off."""

    deviation: float = 0.05
    """Of the declared value; one step is allowed beside it, since schedules count from 0 or 1."""
    warmup_steps: int = 0
    """The run usually declares it itself."""
    total_steps: int = 0
    """The run usually declares it itself."""
    peak: float = 0.0
    """Only a plan in the settings file can say it: what an option called lr means differs."""
    shape: str = ""
    """Only a plan in the settings file can say it."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding for each part of the schedule that is not as declared."""
    skip = needs_smoke(run, RATE)
    plan = planned(run) if skip is not None and run.x_axis == "step" else None
    if skip is not None and plan is None:
        return skip
    rate = run.get(RATE)
    if rate is None or len(rate) < 10:
        return Skipped(f"needs 10 points of {RATE}")
    if plan is not None:
        return _against(run, rate.finite(), plan, params)
    schedule = read(run, params.warmup_steps, params.total_steps)
    if params.shape not in SHAPES:
        return Skipped(f"shape {params.shape!r} is none of {', '.join(SHAPES[1:])}")
    if schedule.warmup is None and schedule.total is None and not params.peak:
        return Skipped("nothing is declared: no option, trainer setting or parameter says how the schedule should be")
    if params.shape:
        return _curve(rate, schedule, params)
    found = [_unused(rate, schedule), _length(rate, schedule, params), _warm_up(rate, schedule, params)]
    return [f for f in (*found, _peak(rate, params)) if f is not None][:1]


def _curve(rate: Series, schedule: Schedule, params: Params) -> list[Finding]:
    """Judge every step against the declared shape; the step that a scheduler starts to count at is free."""
    peak = params.peak or float(rate.value.max())
    warm, total = schedule.warmup or 0.0, schedule.total or 0.0
    if params.shape != "constant" and total <= warm:
        return []
    step: FloatArray = rate.step.astype(np.float64)
    curves = [curve(step + shift, warm, total, peak, params.shape) for shift in (0.0, 1.0)]
    off = np.min([np.abs(rate.value - c) - params.deviation * np.maximum(c, 0.02 * peak) for c in curves], axis=0)
    wrong = np.flatnonzero(off > 0)
    if len(wrong) <= 1:
        return []
    worst = int(np.argmax(off))
    text = (
        f"{RATE} is {number(float(rate.value[worst]))} at step {int(rate.step[worst])}, declared is "
        f"{number(float(curves[0][worst]))} ({params.shape}, warm-up {number(warm)}, {number(total)} steps, peak "
        f"{number(peak)}); {len(wrong)} of {len(rate)} steps are off by more than {params.deviation:.0%}"
    )
    return [_finding(rate, text, "shape", int(wrong[0]), int(wrong[-1]), float(curves[0][worst]))]


def _against(run: Run, rate: Series, plan: Plan, params: Params) -> list[Finding]:
    """Judge the learning rate of a log by the settings beside it; a warning, since they may be those of another run."""
    since = max((n.start_step or 0 for n in run.notes if n.kind == "rewind"), default=0)
    kept = rate.step >= since  # a resume may have changed the plan
    rate = Series(rate.name, rate.step[kept], rate.value[kept])
    wrong = np.flatnonzero(off(rate, plan, params.deviation))
    if len(wrong) < max(FEWEST, SHARE * len(rate)):
        return []
    worst = int(wrong[np.argmax(np.abs(rate.value[wrong] - plan.at(rate.step[wrong].astype(np.float64))))])
    wanted = float(plan.at(rate.step[worst : worst + 1].astype(np.float64))[0])
    reason = explained(run, rate, plan, params.deviation)
    length = f", {number(plan.total)} steps" if plan.total else ""
    text = (
        f"{RATE} is {number(float(rate.value[worst]))} at step {int(rate.step[worst])}, the settings beside the log "
        f"plan {number(wanted)} ({plan.shape}, warm-up {number(plan.warmup)}{length}, peak {number(plan.peak)}); "
        f"{len(wrong)} of {len(rate)} points are off by more than {params.deviation:.0%}"
        + (f": {reason}" if reason else "")
    )
    finding = _finding(rate, text, reason or "settings", int(wrong[0]), int(wrong[-1]), wanted)
    return [replace(finding, severity=Severity.WARNING)]


def _unused(rate: Series, schedule: Schedule) -> Finding | None:
    if schedule.unused is None:
        return None
    made = f" for {number(schedule.unused_steps)} steps" if schedule.unused_steps else ""
    text = f"{schedule.unused} was made{made} and never stepped: {RATE} stays at {number(float(rate.value[-1]))}"
    return _finding(rate, text, "never stepped", 0, len(rate) - 1, schedule.unused_steps)


def _length(rate: Series, schedule: Schedule, params: Params) -> Finding | None:
    if schedule.total is None or schedule.horizon is None:
        return None
    ratios = [length / total for length in schedule.lengths for total in schedule.totals]
    nearest = min(ratios, key=lambda ratio: abs(ratio - 1.0))
    slack = params.deviation + 1.0 / schedule.total
    if abs(nearest - 1.0) <= slack:
        return None
    # With a short last window of micro-batches in each epoch the nearest count of steps is not the one that was meant.
    reason = schedule.reason(nearest) or schedule.reason(schedule.horizon / schedule.total)
    if nearest > 1.0 and reason is None:
        return None
    how = "before" if nearest < 1.0 else "after"
    text = (
        f"The schedule ends at step {number(schedule.horizon)}, {how} the {number(schedule.total)} steps of "
        f"{schedule.total_source}" + (f": {reason}" if reason else "")
    )
    finding = _finding(rate, text, reason or "length", 0, len(rate) - 1, schedule.total)
    if reason is None and schedule.may_end_early:
        return replace(finding, severity=Severity.INFO)
    # Of a rate that is set by hand nobody knows whether it was meant to end at 0.
    return replace(finding, severity=Severity.WARNING) if schedule.fitted else finding


def _warm_up(rate: Series, schedule: Schedule, params: Params) -> Finding | None:
    wanted = schedule.warmup
    if wanted is None or wanted < 5 or not _moves(rate, schedule):
        return None
    slack = 1.0 + params.deviation * wanted
    own, recorded = schedule.own_warmup, len(rate)
    if own is not None and _ignores(rate, own, slack):
        own = None
    took = float(own) if own is not None else _rise(rate)
    if own is None and took >= recorded - 1:  # still rising when the recording ended
        return None
    early = took < wanted - slack and recorded > took + 1
    late = took > wanted + slack and recorded > wanted + slack
    if not (early or late):
        return None
    reason = schedule.reason(took / wanted) if took else None
    what = f"The learning rate warms up over {number(took)} steps" if took else "The learning rate starts at its peak"
    text = f"{what}, declared are {number(wanted)} ({schedule.warmup_source})" + (f": {reason}" if reason else "")
    return _finding(rate, text, reason or "warm-up", 0, int(min(recorded - 1, max(took, wanted))), wanted)


def _moves(rate: Series, schedule: Schedule) -> bool:
    """Tell whether a schedule is at work: an option that only some schedules use is no fault of the others."""
    return schedule.stepped or float(np.ptp(rate.value)) > 0.0


def _ignores(rate: Series, own: float, slack: float) -> bool:
    """Tell whether the rate is at its highest long before the scheduler's warm-up is over: something else sets it."""
    rise = int(_rise(rate))
    until = rate.value[rise : int(own) + 1]
    return rise < own - slack and len(until) > own - rise and bool((until >= 0.999 * rate.value.max()).all())


def _rise(rate: Series) -> float:
    """Return the steps until the highest rate is reached by rising all the way; 0 where it starts at it."""
    top = float(rate.value.max())
    first = int(np.argmax(rate.value >= 0.999 * top))
    if not (np.diff(rate.value[: first + 1]) >= 0).all():
        return 0.0
    # A rate that starts above 0 counts its steps from 1.
    return float(first + 1) if first and rate.value[0] > 0 else float(first)


def _peak(rate: Series, params: Params) -> Finding | None:
    top = float(rate.value.max())
    if not params.peak or top <= (1.0 + params.deviation) * params.peak:
        return None
    text = f"{RATE} reaches {number(top)}, declared is a peak of {number(params.peak)}"
    return _finding(rate, text, "peak", int(np.argmax(rate.value)), len(rate) - 1, params.peak)


def _finding(rate: Series, text: str, reason: str, start: int, end: int, wanted: float) -> Finding:
    return Finding(
        detector="declared_schedule",
        severity=Severity.ERROR,
        title="Learning rate not as declared",
        message=f"{text}.",
        metric=rate.name,
        start_step=int(rate.step[start]),
        end_step=int(rate.step[end]),
        evidence={"declared": wanted, "reason": reason},
        fixes=(
            "Give the scheduler its lengths in optimizer steps, after accumulation, and step it once a step.",
            "If the schedule is meant, say so under [detectors.declared_schedule] in the settings.",
        ),
    )


DETECTOR = Detector("declared_schedule", "Learning rate not as declared", (RATE, "smoke facts"), Params(), detect)
