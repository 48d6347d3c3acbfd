"""Which batches an optimizer step trained on, as positions in the loader."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from trainscope.core.run import IntArray, Run, Series

HASH = "smoke/batch_hash"


@dataclass(frozen=True, slots=True, eq=False)
class Positions:
    """The batches of each step of a run."""

    step: IntArray
    """(n,) steps whose batches were recorded."""
    first: IntArray
    """(n,) position of the first batch of each."""
    count: IntArray
    """(n,) batches of each."""
    hashes: dict[int, str]
    """Step to the hash of its batches."""
    note: str | None
    """What these positions rest on, where it is not the loader's own count."""

    @property
    def per_step(self) -> int:
        """Batches that a step usually trains on."""
        return max(1, int(np.median(self.count))) if len(self.count) else 1

    def of_step(self, step: int) -> range:
        """Return the positions of the batches of a step, extrapolated where it was not recorded."""
        at = int(np.searchsorted(self.step, step, side="right")) - 1
        known = max(at, 0)
        beyond = step - int(self.step[known])
        if beyond == 0:
            return range(int(self.first[known]), int(self.first[known] + self.count[known]))
        first = int(self.first[known]) + beyond * self.per_step
        return range(max(0, first), max(0, first) + self.per_step)

    def of_steps(self, steps: Iterable[int]) -> list[tuple[int, int]]:
        """Return (position, step) of all batches of these steps, by position, none twice."""
        found: dict[int, int] = {}
        for step in steps:
            for position in self.of_step(step):
                found.setdefault(position, step)
        return sorted(found.items())


def positions_of(run: Run) -> Positions:
    """Return what a run recorded of its batches; without a record, one batch a micro-batch, from its first step."""
    index = run.get("batch_index")
    hashes = run.get(HASH)
    named = {} if hashes is None else {int(s): f"{int(v):08x}" for s, v in zip(hashes.step, hashes.value, strict=True)}
    micro = run.get("micro_batches")
    usual = 1 if micro is None else max(1, int(np.median(micro.value)))
    if index is None:
        base = first_step_of(run)
        note = f"the run did not record its batches: taken is {usual} a step, counted from step {base}"
        return Positions(np.array([base]), np.array([0]), np.array([usual]), named, note)
    counted = run.get("batch/count")
    if counted is not None:
        step, mine, theirs = np.intersect1d(index.step, counted.step, assume_unique=True, return_indices=True)
        first, count = index.value[mine].astype(np.int64), counted.value[theirs].astype(np.int64)
        return Positions(step, first, count, named, None)
    first, note = _handed_over(index, usual)
    return Positions(index.step, first, np.full(len(index), usual), named, note)


def first_step_of(run: Run) -> int:
    """Return the number that a run which did not record its batches gives to its first optimizer step.

    The Hugging Face Trainer logs how many steps are done, and so does a log whose first row is step 1.
    """
    return 1 if run.format == "hf_trainer" or run.first_step == 1 else 0


def _handed_over(index: Series, usual: int) -> tuple[IntArray, str]:
    """Return the positions that a script meant with its ``batch_index``, and what they rest on.

    A number that begins again counts within the epoch; one that goes on by 1 where a step has several batches counts
    steps. Both are seen from the numbers themselves.
    """
    value = index.value.astype(np.int64)
    note = "positions are the batch_index that the training script gave to the recorder"
    if len(value) < 2:
        return value, note
    gap = np.diff(index.step)
    a_step = int(np.median(np.diff(value) // gap))
    counts_steps = usual > 1 and a_step == 1
    again = np.flatnonzero(np.diff(value) < 0)
    if len(again) and a_step > 0 and (value[again + 1] <= value[0] + a_step * gap[again]).all():
        for place in again:
            value[place + 1 :] += value[place] + a_step * gap[place] - value[place + 1]
        note += f", added up over the epochs: it begins again at step {int(index.step[again[0] + 1])}"
    if counts_steps:
        value *= usual
        note += f"; it counts steps, each of {usual} batches"
    return value, note
