"""Where each epoch of a run begins, and what the loss does within it. Shared by what is judged epoch by epoch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.run import Run, Series

FloatArray = NDArray[np.float64]

UNEVEN = 0.1
"""Largest difference of two epochs, as a share of one: an epoch of another length is other data."""


@dataclass(frozen=True, slots=True, eq=False)
class Epochs:
    """A loss cut at its epochs."""

    loss: Series
    """Finite points."""
    starts: FloatArray
    """(k + 1,) steps at which each whole epoch begins, and the step at which the last one ends."""
    first: int
    """Number of the first whole epoch, as the log counts."""

    @property
    def count(self) -> int:
        """How many whole epochs there are."""
        return len(self.starts) - 1

    def part(self, epoch: int) -> NDArray[np.intp]:
        """Return the indices of the points of an epoch, counted from 0."""
        low, high = np.searchsorted(self.loss.step, self.starts[epoch : epoch + 2])
        return np.arange(low, high)


def epochs(run: Run, points: int) -> Epochs | str:
    """Return the epochs of the training loss, or in words why there are none to judge.

    Parameters
    ----------
    run : Run
    points : int
        Points of the loss that each epoch must have.
    """
    counter, loss = run.get("epoch"), run.get("train/loss")
    if counter is None or loss is None:
        return "needs epoch and train/loss"
    if run.x_axis == "epoch":
        return "needs several points of train/loss an epoch"
    counter, loss = counter.finite(), loss.finite()
    starts, first = _starts(counter)
    starts = _with_end(starts, float(max(loss.step[-1], counter.step[-1]))) if len(loss) else starts
    # An epoch that began before the first point is no whole one.
    inside = starts >= min(float(loss.step[0]), float(counter.step[0])) if len(loss) else np.zeros(len(starts), bool)
    if int(inside.sum()) < 3:
        return "needs 2 whole epochs"
    first += int(np.argmax(inside))
    starts = starts[inside]
    length = np.diff(starts)
    if length.max() > (1.0 + UNEVEN) * length.min():
        return "needs epochs of equal length"
    found = Epochs(loss, starts, first)
    if min(len(found.part(i)) for i in range(found.count)) < points:
        return f"needs {points} points of train/loss an epoch"
    return found


def _with_end(starts: FloatArray, last: float) -> FloatArray:
    """Return the starts, and the end of the last epoch if the log reaches all but a tenth of it."""
    if len(starts) < 2:
        return starts
    length = float(np.median(np.diff(starts)))
    return np.append(starts, starts[-1] + length) if last >= starts[-1] + (1.0 - UNEVEN) * length else starts


def _starts(counter: Series) -> tuple[FloatArray, int]:
    """Return the steps at which an epoch begins, and the number of the first of these epochs."""
    value, step = counter.value, counter.step.astype(np.float64)
    none = np.empty(0), 0
    if len(value) < 3 or (np.diff(value) < 0).any() or value[-1] - value[0] < 1.0:
        return none
    if (value == np.round(value)).all():  # a counter: an epoch begins where it counts on
        rises = np.flatnonzero(np.diff(value) > 0) + 1
        if (np.diff(value)[rises - 1] > 1.0).any():
            return none
        whole = np.concatenate((step[:1], step[rises]))
        return whole, int(value[0])
    rising = np.concatenate(([True], np.diff(value) > 0))  # rounded to two digits, most often
    number = np.arange(np.ceil(value[0] - 0.02), np.floor(value[-1] + 1e-9) + 1.0)
    at = np.interp(number, value[rising], step[rising])
    return at, int(number[0]) + 1
