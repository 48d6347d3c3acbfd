"""Which batches an optimizer step trained on, as positions in the loader.

Series of these names come from plain logs too, where they may hold anything: what is no position or count is not used,
and the plan says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from trainscope.core.positions import LONGEST
from trainscope.core.run import IntArray, Run, Series

HASH = "smoke/batch_hash"
MOST_A_STEP = LONGEST // 500
"""Batches of one step: those of the longest range that is skipped fit into a list."""
FARTHEST = 2**52
"""Largest position that is taken for one: what is counted on from it stays exact in every reader of JSON."""
MOST_STEPS = 2**40
"""Largest number of an optimizer step; beyond it a log counts something else."""
_HASHES = 2**32


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
    index = _whole(run.get("batch_index"), 0, FARTHEST)
    hashes = _whole(run.get(HASH), 0, _HASHES - 1)
    named = {} if hashes is None else {int(s): f"{int(v):08x}" for s, v in zip(hashes.step, hashes.value, strict=True)}
    micro = _whole(run.get("micro_batches"), 1, MOST_A_STEP)
    usual = 1 if micro is None else int(np.median(micro.value))
    falls = _fall(index)
    if index is None or falls is not None:
        nothing = np.empty(0, dtype=np.int64)
        note = f"taken is {usual} a step, counted from step 0"
        said = (
            "the run did not record its batches" if run.get("batch_index") is None else "no batch_index is a position"
        )
        return Positions(nothing, nothing, np.array([usual]), named, f"{falls or said}: {note}")
    counted = _whole(run.get("batch/count"), 1, MOST_A_STEP)
    if counted is not None:
        step, mine, theirs = np.intersect1d(index.step, counted.step, assume_unique=True, return_indices=True)
        if len(step):
            first, count = index.value[mine].astype(np.int64), counted.value[theirs].astype(np.int64)
            return Positions(step, first, count, named, None)
    note = "positions are the batch_index that the training script gave to the recorder"
    return Positions(index.step, index.value.astype(np.int64), np.full(len(index), usual), named, note)


def _whole(series: Series | None, least: int, most: int) -> Series | None:
    """Return the whole numbers of a series that are in range, None where there is none."""
    if series is None:
        return None
    with np.errstate(invalid="ignore"):
        fits = (series.value >= least) & (series.value <= most) & (np.floor(series.value) == series.value)
    return Series(series.name, series.step[fits], series.value[fits]) if fits.any() else None


def _fall(index: Series | None) -> str | None:
    """Return where positions fall, which they never do: the number within an epoch names a batch of every epoch."""
    if index is None or not (np.diff(index.value) < 0).any():
        return None
    at = int(np.argmax(np.diff(index.value) < 0))
    before, after = (int(value) for value in index.value[at : at + 2])
    return (
        f"batch_index falls from {before} to {after} at step {int(index.step[at + 1])}, so it is no position in the run"
    )


def why_unplanned(run: Run) -> str | None:
    """Return why no batch of a run can be named, None where they can."""
    way_out = "log the step, or record the run"
    if run.x_axis != "step":
        return f"the log counts {run.x_axis}s and not steps, so that no batch can be named; {way_out}"
    first, last = run.first_step or 0, run.last_step or 0
    if first >= 0 and last <= MOST_STEPS:
        return None
    return f"steps {first} to {last} do not count optimizer steps from 0 on, so that no batch can be named; {way_out}"
