"""learning_rate_change: the learning rate is not the baseline's.

What it finds
    A schedule that runs faster or slower, lost its warm-up, stopped, or another peak.
Algorithm
    The largest relative difference at common steps, of every learning rate that both have; of a smoke run also of the
    smallest and largest of all parameter groups.
Parameters
    deviation: largest relative difference at one step.
False positives
    An intended change: accept it as the new baseline.
Misses
    A change by less.
Reference
    accelerate#2124, diffusers#3954, Lightning#1476: schedules that ran at another speed than declared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import Kind, kind
from trainscope.core.run import FloatArray
from trainscope.detectors.base import Skipped, number
from trainscope.diagnosis.base import Aligned, Compared, Comparer, Comparison, Pair

LEAST = 3
EXTREMES = ("smoke/learning_rate_min", "smoke/learning_rate_max")
"""Of all parameter groups."""


@dataclass(frozen=True, slots=True)
class Params:
    """How different is different."""

    deviation: float = 0.05
    """Of the baseline's learning rate at that step."""


def compare(pair: Pair, params: Params) -> Compared | Skipped:
    """Compare every learning rate that both runs have."""
    names = [n for n in pair.base.series if kind(n) is Kind.LEARNING_RATE]
    names += EXTREMES
    found: list[Finding] = []
    lines: list[Comparison] = []
    for name in names:
        both = pair.both(name)
        if both is None or len(both) < LEAST:
            continue
        deviation = _deviation(both)
        worst = int(np.argmax(deviation))
        changed = bool(deviation[worst] > params.deviation)
        if name in EXTREMES and (found or not changed):
            continue  # of the other groups only what the first does not say
        lines.append(Comparison(name, "changed" if changed else "same", int(both.step[worst]), float(both.run[worst])))
        if changed:
            found.append(_finding(name, both, deviation, worst, params))
    if not lines:
        return Skipped("needs a learning rate of both runs")
    return Compared(tuple(found), tuple(lines))


def _deviation(both: Aligned) -> FloatArray:
    peak = float(np.nanmax(np.abs(both.base)))
    # Where a schedule is at 0, a difference counts against its peak: 1e-12 is not infinitely more than 0.
    scale = np.maximum(np.abs(both.base), 1e-3 * peak)
    with np.errstate(invalid="ignore", divide="ignore"):
        deviation: FloatArray = np.abs(both.run - both.base) / scale
    return np.where(both.run == both.base, 0.0, np.nan_to_num(deviation, nan=np.inf))


def _finding(name: str, both: Aligned, deviation: FloatArray, worst: int, params: Params) -> Finding:
    off = np.flatnonzero(deviation > params.deviation)
    return Finding(
        detector="learning_rate_change",
        severity=Severity.WARNING,
        title="Learning rate differs from the baseline",
        message=(
            f"{name} is {number(float(both.run[worst]))} at step {int(both.step[worst])}, the baseline's "
            f"{number(float(both.base[worst]))}; they differ by more than {params.deviation:.0%} at {len(off)} of "
            f"{len(both)} steps."
        ),
        metric=name,
        start_step=int(both.step[off[0]]),
        end_step=int(both.step[off[-1]]),
        peak_step=int(both.step[worst]),
        evidence={
            "deviation": float(deviation[worst]),
            "limit": params.deviation,
            "steps": len(off),
            "higher": int(both.run[worst] > both.base[worst]),
        },
        fixes=(
            "Check how often the scheduler steps, in which unit its horizon counts, and which optimizer it drives.",
            "If the change is meant, save a new baseline.",
        ),
    )


COMPARER = Comparer(
    "learning_rate_change", "Learning rate differs from the baseline", ("learning_rate",), Params(), compare
)
