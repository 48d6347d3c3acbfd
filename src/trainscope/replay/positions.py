"""Which batches an optimizer step trained on, as positions in the loader."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from trainscope.core.run import IntArray, Run

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
        if not len(self.step):
            return range(step * self.per_step, (step + 1) * self.per_step)
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
    """Return what a run recorded of its batches; without a record, one batch a micro-batch, from step 0."""
    index = run.get("batch_index")
    hashes = run.get(HASH)
    named = {} if hashes is None else {int(s): f"{int(v):08x}" for s, v in zip(hashes.step, hashes.value, strict=True)}
    micro = run.get("micro_batches")
    usual = 1 if micro is None else max(1, int(np.median(micro.value)))
    if index is None:
        nothing = np.empty(0, dtype=np.int64)
        note = f"the run did not record its batches: taken is {usual} a step, counted from step 0"
        return Positions(nothing, nothing, np.array([usual]), named, note)
    counted = run.get("batch/count")
    if counted is not None:
        step, mine, theirs = np.intersect1d(index.step, counted.step, assume_unique=True, return_indices=True)
        first, count = index.value[mine].astype(np.int64), counted.value[theirs].astype(np.int64)
        return Positions(step, first, count, named, None)
    note = "positions are the batch_index that the training script gave to the recorder"
    return Positions(index.step, index.value.astype(np.int64), np.full(len(index), usual), named, note)
