"""first_difference: the first step and signal at which the run leaves its baseline.

What it finds
    The earliest step at which any signal differs by more than rounding, and the signals in the order in which they
    do: data before learning rate before gradients before loss. It says where to look, not whether it is bad.
Algorithm
    Relative difference at common steps; ties go to what comes earlier in a training step.
Parameters
    relative: largest difference that is rounding.
False positives
    None: an information, given only beside another finding of the comparison.
Misses
    Signals that were not recorded.
Reference
    torchtitan's loss_compare.py looks for the first differing step in the same spirit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.detectors.base import Skipped
from trainscope.diagnosis.base import Compared, Comparer, Comparison, Pair

SIGNALS = (
    "learning_rate",
    "micro_batches",
    "train/loss",
    "train/grad_norm",
    "train/grad_norm_after_clip",
    "optimizer/update_norm",
    "model/weight_norm",
    "eval/loss",
    "smoke/eval_cross_entropy",
)
"""In the order in which a training step makes them."""


@dataclass(frozen=True, slots=True)
class Params:
    """What counts as rounding."""

    relative: float = 1e-3
    """bf16 gives 1e-3, fp32 1e-6 (measured)."""


def compare(pair: Pair, params: Params) -> Compared | Skipped:
    """Return where the runs part."""
    departures = departures_of(pair, params.relative)
    if not any(pair.both(name) for name in SIGNALS):
        return Skipped("the runs share no signal")
    if not departures:
        return Compared((), (Comparison("first difference", "none beyond rounding"),))
    step, first = departures[0]
    order = ", ".join(f"{name} at step {at}" for at, name in departures[:5])
    finding = Finding(
        detector="first_difference",
        severity=Severity.INFO,
        title="Where the runs part",
        message=f"The run leaves its baseline in this order: {order}.",
        metric=first,
        start_step=step,
        end_step=step,
        evidence={"step": step, "signal": first},
    )
    return Compared((finding,), (Comparison("first difference", first, step),))


def departures_of(pair: Pair, relative: float = 1e-3) -> list[tuple[int, str]]:
    """Return (step, signal) of each signal's first difference, earliest first."""
    found: list[tuple[int, int, str]] = []
    for place, series in ((-2, facts.BATCH), (-1, facts.RANDOM)):
        at = facts.first_difference(pair.run, pair.base, series)
        if at is not None:
            found.append((at, place, "batches" if series is facts.BATCH else "random numbers"))
    for place, name in enumerate(SIGNALS):
        both = pair.both(name)
        if both is None:
            continue
        with np.errstate(invalid="ignore"):
            off = np.abs(both.run - both.base) > relative * np.maximum(np.abs(both.base), 1e-12)
        off |= np.isfinite(both.run) != np.isfinite(both.base)
        if off.any():
            found.append((int(both.step[np.argmax(off)]), place, name))
    return [(at, name) for at, _, name in sorted(found)]


COMPARER = Comparer("first_difference", "Where the runs part", SIGNALS, Params(), compare)
