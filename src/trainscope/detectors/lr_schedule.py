"""lr_schedule: the learning rate jumps, restarts, or starts at its peak without a warm-up.

What it finds
    (a) *Jump*: up by more than `jump` from one logged point to the next, after the warm-up.
    (b) *Restart*: a sudden fall to under half, then a new warm-up: scheduler state was lost.
    (c) *No warm-up*: a decaying schedule that starts at its peak in a run that trains from scratch.
Algorithm
    Ratios of neighbouring logged values. One leg of a steady ramp is not a jump: a neighbour that moves
    the same way at half the rate per step or more excuses it. Restarts from the schedule's own minimum, to
    the same or a lower peak, at even or growing distances are deliberate (cosine restarts). Steps down
    are deliberate (step decay). From scratch means that the loss more than halves.
Parameters
    jump: smallest ratio upwards.
    drop: largest ratio of a sudden fall that a new warm-up follows.
    min_peak, max_peak: range of peaks in which a missing warm-up is worth a warning (Adam's).
False positives
    A schedule that is raised by hand in the middle of a run, knowingly.
Misses
    A schedule that is smooth but wrong: compare with the declared one or a baseline.
    No warm-up with constant or step-decay schedules: those are usual with SGD.
Reference
    I. Loshchilov and F. Hutter, "SGDR", arXiv:1608.03983 (deliberate restarts).
    yolov5#292 and the_well#77 (learning rate reset at resume).
    P. Goyal et al., arXiv:1706.02677, and L. Liu et al., "RAdam", arXiv:1908.03265 (why warm up).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import Kind
from trainscope.core.run import Run, Series
from trainscope.detectors.base import MOST, Detector, Skipped, by_kind, number
from trainscope.detectors.engine.rates import are_deliberate, leaps, warm_up_end
from trainscope.detectors.engine.restarts import restart_steps

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Params:
    """Ratios of learning rates, and the usual range of Adam's."""

    jump: float = 1.5
    """Twice the GPUs, a lost scheduler and a wrong resume are all above it."""
    drop: float = 0.5
    """To the value before."""
    min_peak: float = 1e-4
    """Below it a missing warm-up does no harm (Hugging Face's default is 5e-5 without one)."""
    max_peak: float = 1e-2
    """Above it the optimizer is SGD, where starting at the peak is usual."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return what is odd about the main learning rate."""
    main = run.get("learning_rate")
    rates = [main] if main is not None else by_kind(run, Kind.LEARNING_RATE)[:1]
    if not rates:
        return Skipped("needs learning_rate")
    rate = rates[0].finite()
    if len(rate) < 10:
        return Skipped(f"needs 10 points of learning_rate, has {len(rate)}")
    if not (rate.value > 0).any():
        return Skipped("needs a learning rate above 0")
    jumps = _jumps(rate, params)
    again = [s for s in restart_steps(run) if not any(_covers(f, s) for f in jumps)]
    return [*jumps, *(_started_over(rate, step, len(again)) for step in again[:1]), *_no_warmup(run, rate, params)]


def _covers(finding: Finding, step: int) -> bool:
    start, end = finding.start_step or 0, finding.end_step or 0
    return start - 0.02 * end <= step <= 1.02 * end


def _started_over(rate: Series, step: int, times: int) -> Finding:
    after = rate.value[rate.step >= step]
    peak = float(after[: max(3, len(rate) // 5)].max())
    many = f", the first of {times} times" if times > 1 else ""
    return Finding(
        detector="lr_schedule",
        severity=Severity.WARNING,
        title="Learning rate restarts",
        message=f"{rate.name} is at {number(float(after[0]))} at step {step}, warms up again to {number(peak)}, "
        f"and the loss starts over with it{many}.",
        metric=rate.name,
        start_step=step,
        end_step=step,
        peak_step=step,
        evidence={"low": float(after[0]), "after": peak},
        fixes=("If the run continued here, check that weights, optimizer and scheduler state were loaded.",),
    )


def _jumps(rate: Series, params: Params) -> list[Finding]:
    value = rate.value
    peak = float(value.max())
    warm = warm_up_end(value)
    up = leaps(rate, params.jump)
    if not up and not (value[warm + 1 :] < params.drop * value[warm:-1]).any():
        return []
    rewarmed = [(i, j) for i, j in _rewarmed(value, warm, params, peak) if not any(i <= k <= j for k in up)]
    if are_deliberate(rate, up):
        up = []
    found = [_jump(rate, i) for i in up[:MOST]]
    return found + [_restart(rate, i, j) for i, j in rewarmed[:MOST]]


def _rewarmed(value: FloatArray, warm: int, params: Params, peak: float) -> list[tuple[int, int]]:
    """Return (index before the fall, index of the new peak) of each fall that a ramp follows."""
    found = []
    i = warm
    while i < len(value) - 3:
        if value[i] > 0.02 * peak and value[i + 1] < params.drop * value[i]:
            after = value[i + 1 :]
            falls = np.flatnonzero(np.diff(after) < 0)
            top = int(falls[0]) if len(falls) else len(after) - 1
            if top >= 2 and after[top] > 3.0 * max(after[0], 1e-3 * peak):
                found.append((i, i + 1 + top))
                i += top
        i += 1
    return found


def _jump(rate: Series, i: int) -> Finding:
    before, after = float(rate.value[i]), float(rate.value[i + 1])
    start, end = int(rate.step[i]), int(rate.step[i + 1])
    times = f"{number(after / before)}-fold " if before > 0 else ""
    return Finding(
        detector="lr_schedule",
        severity=Severity.WARNING,
        title="Learning rate jumps",
        message=f"{rate.name} jumps {times}from {number(before)} to {number(after)} between steps {start} and {end}.",
        metric=rate.name,
        start_step=start,
        end_step=end,
        peak_step=end,
        evidence={"before": before, "after": after},
        fixes=(
            "If the run was resumed here, restore the scheduler's state with the optimizer's.",
            "Check whether the number of processes or the accumulation changed the number of scheduler steps.",
        ),
    )


def _restart(rate: Series, i: int, j: int) -> Finding:
    start, end = int(rate.step[i]), int(rate.step[j])
    return Finding(
        detector="lr_schedule",
        severity=Severity.WARNING,
        title="Learning rate restarts",
        message=(
            f"{rate.name} falls from {number(float(rate.value[i]))} to {number(float(rate.value[i + 1]))} after step "
            f"{start} and warms up again to {number(float(rate.value[j]))} by step {end}."
        ),
        metric=rate.name,
        start_step=start,
        end_step=end,
        peak_step=int(rate.step[i + 1]),
        evidence={
            "before": float(rate.value[i]),
            "low": float(rate.value[i + 1]),
            "after": float(rate.value[j]),
        },
        fixes=("If the run was resumed here, restore the scheduler's state with the optimizer's.",),
    )


def _no_warmup(run: Run, rate: Series, params: Params) -> list[Finding]:
    value, step = rate.value, rate.step
    peak = float(value.max())
    span = float(step[-1] - step[0])
    loss = run.get("train/loss")
    sample = value[:: max(1, len(value) // 1000)]
    smooth_decay = len(np.unique(sample)) > max(8, len(sample) // 4)
    starts_high = value[0] >= 0.9 * peak and value[-1] < 0.9 * peak
    early = run.x_axis == "step" and float(step[0]) <= 0.02 * (span + float(step[0]))
    if loss is None or not (smooth_decay and starts_high and early and params.min_peak <= peak <= params.max_peak):
        return []
    curve = loss.finite().value
    if len(curve) < 20:
        return []
    first, last = float(np.median(curve[:3])), float(np.median(curve[-max(3, len(curve) // 10) :]))
    if last <= 0 or first < 2.0 * last or first < 2.0:
        return []
    end = int(step[min(len(step) - 1, max(1, len(step) // 100))])
    return [
        Finding(
            detector="lr_schedule",
            severity=Severity.WARNING,
            title="No warm-up",
            message=(
                f"{rate.name} starts at its peak of {number(peak)} at step {int(step[0])} while {loss.name} falls from "
                f"{number(first)}: a run from scratch without warm-up."
            ),
            metric=rate.name,
            start_step=int(step[0]),
            end_step=end,
            peak_step=int(step[0]),
            evidence={"peak": peak, "first": float(value[0]), "first_loss": first},
            fixes=(
                "Warm up linearly over the first 1 to 5 % of the steps.",
                "If warm-up is configured, check that the scheduler counts optimizer steps.",
            ),
        )
    ]


DETECTOR = Detector("lr_schedule", "Learning rate schedule", ("learning_rate", "train/loss"), Params(), detect)
