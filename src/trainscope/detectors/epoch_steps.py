"""epoch_steps: the loss steps down where an epoch begins and hardly within it; usually no fault.

What it finds
    A training loss that falls in stairs, one at the start of each epoch: the model remembers what it has seen. An
    information, since people take it for a bug in the loader.
Algorithm
    At each start of an epoch the median of a tenth of an epoch after it is compared with that before it, and so are
    neighbouring tenths within the epochs. Where the drop at a start is `drop` of the level, twice as large as at any
    place of the half epoch before and of the epoch after, and 6 standard errors, it is a stair. All starts, or all but
    one of four or more, must be stairs, and the learning rate must not have been lowered at them.
Parameters
    drop: smallest drop, as a fraction of the level.
False positives
    A loss that the log averages since the epoch began steps down as well; that is as harmless. In 5,361 healthy
    synthetic logs with an epoch counter: none.
Misses
    One start only; an epoch of fewer than 20 logged points.
Reference
    axolotl#735, transformers#18730, open-instruct#128: the same stairs, asked about as a bug and explained.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.finding import Finding, Severity
from trainscope.core.robust import difference_sigma
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, number, several_objectives
from trainscope.detectors.engine.epochs import Epochs, epochs

FloatArray = NDArray[np.float64]

POINTS = 20
"""Logged points an epoch below which a tenth of one is no median."""
PARTS = 10
LOWERED = 0.8
"""Of the learning rate before a start: less is a step of the schedule, which explains the stair."""


@dataclass(frozen=True, slots=True)
class Params:
    """What counts as a stair."""

    drop: float = 0.03
    """As a fraction of the level."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return an information where each epoch begins with a step down."""
    cut = epochs(run, POINTS)
    if isinstance(cut, str):
        return Skipped(cut)
    if cut.count < 2 or several_objectives(run):
        return Skipped("needs 2 whole epochs of one objective")
    drops = [_stair(cut, i, params) for i in range(1, cut.count)]
    stairs = [drop for drop in drops if drop is not None]
    if len(stairs) < 2 or len(stairs) < len(drops) - (len(drops) >= 4):
        return []
    rate = run.get("learning_rate")
    if rate is not None and _lowered(rate, cut):
        return []
    return [_finding(run, cut, stairs)]


def _stair(cut: Epochs, epoch: int, params: Params) -> float | None:
    """Return the drop at the start of an epoch as a share of the level before, None if it is no stair."""
    before, after = cut.loss.value[cut.part(epoch - 1)], cut.loss.value[cut.part(epoch)]
    size = max(2, min(len(before), len(after)) // PARTS)
    drop, level = float(np.median(before[-size:]) - np.median(after[:size])), abs(float(np.median(before[-size:])))
    within = max(_steepest(before[len(before) // 2 :], size), _steepest(after, size))
    error = 1.25 * max(difference_sigma(before), difference_sigma(after)) * np.sqrt(2.0 / size)
    if level == 0.0 or drop < max(params.drop * level, 2.0 * within, 6.0 * error):
        return None
    return drop / level


def _steepest(value: FloatArray, size: int) -> float:
    """Return the largest drop from one stretch of `size` points to the next one."""
    middle = np.median(np.lib.stride_tricks.sliding_window_view(value, size), axis=1)
    return float(np.max(middle[:-size] - middle[size:]))


def _lowered(rate: Series, cut: Epochs) -> bool:
    """Tell whether the learning rate falls at most starts."""
    lowered = 0
    for start in cut.starts[1:-1]:
        before, after = rate.value[rate.step < start], rate.value[rate.step >= start]
        lowered += bool(len(before) and len(after) and after[min(1, len(after) - 1)] < LOWERED * before[-1])
    return 2 * lowered > cut.count - 1


def _finding(run: Run, cut: Epochs, stairs: list[float]) -> Finding:
    held_out = run.get("eval/loss")
    watch = "while eval/loss does not rise" if held_out is not None else "while a held-out loss does not rise"
    return Finding(
        detector="epoch_steps",
        severity=Severity.INFO,
        title="Loss steps down each epoch",
        message=(
            f"{cut.loss.name} falls by {min(stairs):.0%} to {max(stairs):.0%} where an epoch begins, at {len(stairs)} "
            f"of {cut.count - 1} starts, and hardly within: the model remembers data it has seen. Likely benign, "
            f"{watch}."
        ),
        metric=cut.loss.name,
        start_step=int(cut.starts[1]),
        end_step=int(cut.starts[-2]),
        peak_step=int(cut.starts[1]),
        evidence={"stairs": len(stairs), "epochs": cut.count, "drop": float(np.median(stairs))},
        fixes=(f"More data or fewer epochs, if the {number(cut.count)} epochs memorise more than they learn.",),
    )


DETECTOR = Detector("epoch_steps", "Loss steps down each epoch", ("epoch", "train/loss"), Params(), detect)
