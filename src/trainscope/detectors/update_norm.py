"""update_norm: the optimizer's update leaps, and neither the learning rate nor the gradient explains it.

What it finds
    A step at which the weights change by several times more than at the steps before, at a learning rate and with a
    gradient that are as before: moments that were lost or went stale, weights that something else than the optimizer
    changed, weight decay that was set wrongly in between. The loss follows a step or more later, if it does at all.
Algorithm
    From a recorded run: the norm of the update over the learning rate of its step; jumps of its logarithm against the
    run's own tail, as in `grad_norm`. A jump is explained, and no finding, where the norm of the gradient (after
    clipping, if that is known) rose by at least half as much in the two steps before it or in it. Where one layer has
    half of the rise of the squared norm or more, it is named.
Parameters
    ratio: smallest ratio to the level before.
False positives
    A change of the optimizer's settings that is meant, other than of the learning rate; weights that are merged, reset
    or averaged on purpose between two steps.
Misses
    What the gradient rises with: `grad_norm` tells it. The first twelve steps. An update that grows little by little.
Reference
    marin-community/marin#1368 (32B: the norm of Adam's update doubles before the loss spikes, the gradient's follows).
    Measured: 0 of 252 healthy recordings reached 2.5 times their level, and an optimizer whose state was lost 4.1 to
    4.6 times, in 12 of 12; a tensor whose weights were changed between two steps, 311 times and more in 10 of 10.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import FloatArray, Run, Series
from trainscope.detectors.base import MOST, Detector, Lack, Skipped, number
from trainscope.detectors.engine.events import Excursion, Limits
from trainscope.detectors.engine.jumps import jumps
from trainscope.detectors.engine.places import place
from trainscope.detectors.engine.restarts import near_restart

UPDATE, RATE = "optimizer/update_norm", "learning_rate"
GRADIENTS = ("train/grad_norm_after_clip", "train/grad_norm")
LEVEL = 25
"""Steps whose median gradient is the usual one."""
BEFORE = 2
"""Steps before the update in which a gradient may have risen that momentum carries on."""


@dataclass(frozen=True, slots=True)
class Params:
    """Ratio to the recent level."""

    ratio: float = 3.0
    """Between what healthy runs reach, 1.8, and a lost state, 4.1."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return the leaps of the update that nothing explains, the highest ones."""
    update = _by_rate(run)
    if update is None or len(update) < 30:
        return Skipped(f"needs 30 points of {UPDATE}, which a recorded run has", kind=Lack.RECORDING)
    log = np.log(update.value)
    events = [
        e
        for e in jumps(log, Limits(min_rise=0.0, lonely=4.0))
        if e.top - e.level >= np.log(params.ratio) and not _is_explained(run, update, e)
    ]
    worst = sorted(events, key=lambda e: e.level - e.top)[:MOST]
    return [_finding(run, update, e, len(events)) for e in sorted(worst, key=lambda e: e.start)]


def _by_rate(run: Run) -> Series | None:
    """Return the norm of the update over the learning rate of its step, where the optimizer stepped."""
    update, rate = run.get(UPDATE), run.get(RATE)
    if update is None:
        return None
    value: FloatArray = update.value
    if rate is not None:
        with np.errstate(all="ignore"):
            value = value / np.interp(update.step, rate.step, rate.value)
    good = np.isfinite(value) & (value > 0)
    return Series(UPDATE, update.step[good], value[good])


def _is_explained(run: Run, update: Series, event: Excursion) -> bool:
    """Tell whether the gradient rose with the update, or the training began anew here."""
    start, peak = int(update.step[event.start]), int(update.step[event.peak])
    if near_restart(run, start):
        return True
    gradient = next((found for name in GRADIENTS if (found := run.get(name)) is not None), None)
    if gradient is None:
        return False
    gradient = gradient.finite()
    first, last = (int(i) for i in np.searchsorted(gradient.step, (start - BEFORE, peak + 1)))
    before = gradient.value[max(0, first - LEVEL) : first]
    if not len(before) or first >= last or not np.median(before) > 0:
        return False
    rise = float(gradient.value[first:last].max() / np.median(before))
    return rise > 0 and np.log(rise) >= 0.5 * (event.top - event.level)


def _finding(run: Run, update: Series, event: Excursion, total: int) -> Finding:
    start, peak, end = (int(update.step[i]) for i in (event.start, event.peak, event.end))
    ratio = float(np.exp(event.top - event.level))
    where = place(run.layers, "update_l2_norm", start, peak)
    many = f" It is one of {total} in this run." if total > 1 else ""
    return Finding(
        detector="update_norm",
        severity=Severity.WARNING,
        title="Update leaps",
        message=f"{UPDATE} rose {number(ratio)}-fold for its learning rate at step {peak}, and the gradient does not "
        f"explain it.{'' if where is None else f' {where.said}'}{many}",
        metric=UPDATE,
        layer=None if where is None else where.layer,
        start_step=start,
        end_step=end,
        peak_step=peak,
        evidence={"ratio": ratio, "score": event.score},
        fixes=(
            "Check that the optimizer's state is loaded on a resume, and that it is built once.",
            "Look for what else writes to the weights at this step: averaging, merging, a callback.",
            "Lower Adam's beta2 (0.95), or clip the update (StableAdamW).",
        ),
    )


DETECTOR = Detector("update_norm", "Update leaps", (UPDATE, RATE), Params(), detect)
