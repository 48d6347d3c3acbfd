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
    base: int = 0
    """Step from which batches are counted that were not recorded."""

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
    index = _whole(run.get("batch_index"), 0, FARTHEST)
    hashes = _whole(run.get(HASH), 0, _HASHES - 1)
    named = {} if hashes is None else {int(s): f"{int(v):08x}" for s, v in zip(hashes.step, hashes.value, strict=True)}
    micro = _whole(run.get("micro_batches"), 1, MOST_A_STEP)
    usual = 1 if micro is None else int(np.median(micro.value))
    said = "the run did not record its batches" if run.get("batch_index") is None else "no batch_index is a position"
    if index is not None:
        found = _counted(run, index, named)
        if found is not None:
            return found
        first, note = _handed_over(index, usual)
        falls = _fall(index, first)
        if falls is None:
            return Positions(index.step, first, np.full(len(index), usual), named, note)
        said = falls
    base = first_step_of(run)
    note = f"{said}: taken is {usual} a step, counted from step {base}"
    return Positions(np.array([base]), np.array([0]), np.array([usual]), named, note, base)


def first_step_of(run: Run) -> int:
    """Return the number that a run which did not record its batches gives to its first optimizer step.

    The Hugging Face Trainer logs how many steps are done, and so does a log whose first row is step 1.
    """
    return 1 if run.format == "hf_trainer" or run.first_step == 1 else 0


def _counted(run: Run, index: Series, named: dict[int, str]) -> Positions | None:
    """Return the loader's own count of a smoke run, None where it has none."""
    counted = _whole(run.get("batch/count"), 1, MOST_A_STEP)
    if counted is None or _fall(index, index.value.astype(np.int64)) is not None:
        return None
    step, mine, theirs = np.intersect1d(index.step, counted.step, assume_unique=True, return_indices=True)
    if not len(step):
        return None
    first, count = index.value[mine].astype(np.int64), counted.value[theirs].astype(np.int64)
    return Positions(step, first, count, named, None)


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


def _whole(series: Series | None, least: int, most: int) -> Series | None:
    """Return the whole numbers of a series that are in range, None where there is none."""
    if series is None:
        return None
    with np.errstate(invalid="ignore"):
        fits = (series.value >= least) & (series.value <= most) & (np.floor(series.value) == series.value)
    return Series(series.name, series.step[fits], series.value[fits]) if fits.any() else None


def _fall(index: Series, position: IntArray) -> str | None:
    """Return where positions fall, which they never do: the number within an epoch names a batch of every epoch."""
    if not (np.diff(position) < 0).any():
        return None
    at = int(np.argmax(np.diff(position) < 0))
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
