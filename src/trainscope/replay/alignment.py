"""A run and its replay side by side: the steps at which both trained on the same batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.run import FloatArray, IntArray, Run, Series
from trainscope.replay.positions import first_step_of, positions_of


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """Which step of the replay trained on the batches of which step of the original."""

    original: IntArray
    """(n,) steps, increasing."""
    replay: IntArray
    """(n,) the steps of the replay that got the same batches."""
    beyond: int | None = None
    """First step of the replay on a batch that the original did not reach."""

    def __len__(self) -> int:
        return len(self.original)

    def at(self, step: int) -> int | None:
        """Return the replay's step for the first common step at or after one of the original, or for what came then."""
        place = int(np.searchsorted(self.original, step))
        return int(self.replay[place]) if place < len(self) else self.beyond

    def values(self, original: Run, replay: Run, metric: str) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return steps of the original, and a metric of both runs there; empty where either lacks it."""
        mine, theirs = original.get(metric), replay.get(metric)
        if mine is None or theirs is None or not len(self):
            nothing = np.empty(0)
            return np.empty(0, dtype=np.int64), nothing, nothing
        both = np.isin(self.original, mine.step) & np.isin(self.replay, theirs.step)
        steps, others = self.original[both], self.replay[both]
        return (
            steps,
            mine.value[np.searchsorted(mine.step, steps)],
            theirs.value[np.searchsorted(theirs.step, others)],
        )


def align(original: Run, replay: Run) -> Alignment:
    """Return the common steps, by the position of their first batch; by number where positions are not recorded.

    A log that counts from 1 is a step ahead of a recording, which counts from 0; its positions follow from how many
    batches a step of the replay has.
    """
    mine, theirs = original.get("batch_index"), replay.get("batch_index")
    if mine is None and theirs is not None and (loss := original.get("train/loss")) is not None:
        step = loss.step - first_step_of(original)
        mine = Series("batch_index", loss.step, (step * positions_of(replay).per_step).astype(np.float64))
    if mine is None or theirs is None:
        mine, theirs = original.get("train/loss"), replay.get("train/loss")
        if mine is None or theirs is None:
            return Alignment(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        common = np.intersect1d(mine.step, theirs.step)
        return Alignment(common, common)
    _, here, there = np.intersect1d(mine.value, theirs.value, return_indices=True)
    behind = theirs.step[theirs.value > mine.value.max(initial=-np.inf)]
    return Alignment(mine.step[here], theirs.step[there], int(behind[0]) if len(behind) else None)
