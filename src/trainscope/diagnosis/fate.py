"""What became of runs that broke alike: their losses around the onset, as one band.

Algorithm
    The loss of each run is divided by its own median over the ``POINTS`` logged points before the onset, and
    laid on a common grid of steps from the onset. At each place the median and the quartiles over the runs
    that still log there are taken (averaged inverted distribution function, so that infinities need no
    arithmetic). A loss that is NaN or infinite counts as above every number: a run that died does not make the
    rest look better.
Limits
    Quartiles of one or two runs are no band: fewer than ``LEAST`` runs give a median only. A run whose trouble
    begins in its first points has no baseline and is left out by name; so is one whose loss is not positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainscope.core.run import FloatArray, IntArray, Run, Series
from trainscope.diagnosis.case import Case

POINTS = 60
"""Points before the onset and after it."""
LEAST = 3
"""Runs that make a band."""
LEAST_BASELINE = 5
"""Points that make a baseline."""


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """The common fate of some runs."""

    offset: IntArray
    """(k,) steps from the onset."""
    median: FloatArray
    """(k,) loss over its baseline; infinite where most runs have no finite loss, NaN where none logs."""
    low: FloatArray
    """(k,) lower quartile, NaN for fewer than ``LEAST`` runs."""
    high: FloatArray
    """(k,) upper quartile."""
    runs: IntArray
    """(k,) runs that log there."""
    members: int
    """Runs that the band is made of."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Runs that have no part in it, and why."""


@dataclass(frozen=True, slots=True, eq=False)
class _Aligned:
    loss: Series
    onset: int
    baseline: float


def common_fate(members: Sequence[Case]) -> Band:
    """Return the band of some broken runs; empty where none can be aligned."""
    aligned: list[_Aligned] = []
    left_out: list[tuple[str, str]] = []
    for case in members:
        found = _align(case.run, case.onset)
        if isinstance(found, str):
            left_out.append((case.run.name, found))
        else:
            aligned.append(found)
    if not aligned:
        nothing = np.zeros(0)
        return Band(np.zeros(0, np.int64), nothing, nothing, nothing, np.zeros(0, np.int64), 0, tuple(left_out))
    offset = np.arange(-POINTS, POINTS + 1) * _spacing([a.loss for a in aligned])
    table = np.stack([_on_grid(a.loss, a.onset, a.baseline, offset) for a in aligned])
    return _band(offset, table, tuple(left_out))


def normalised(run: Run, onset: int, offset: IntArray) -> FloatArray:
    """Return the loss of any run as if it broke at `onset`, (k,); NaN where it logs nothing or has no baseline."""
    found = _align(run, onset)
    if isinstance(found, str):
        return np.full(len(offset), np.nan)
    return _on_grid(found.loss, onset, found.baseline, offset)


def _align(run: Run, onset: int | None) -> _Aligned | str:
    """Return a loss with its onset and baseline, or why there is none."""
    loss = run.get("train/loss")
    if loss is None:
        return "logs no train/loss"
    if onset is None:
        return "its trouble has no step"
    before = loss.value[: np.searchsorted(loss.step, onset)][-POINTS:]
    before = before[np.isfinite(before)]
    if len(before) < LEAST_BASELINE:
        return f"has {len(before)} losses before the onset, and a baseline needs {LEAST_BASELINE}"
    baseline = float(np.median(before))
    return _Aligned(loss, onset, baseline) if baseline > 0 else "its loss is not positive before the onset"


def _spacing(losses: Sequence[Series]) -> int:
    steps = [float(np.median(np.diff(loss.step))) for loss in losses if len(loss) > 1]
    return max(int(np.median(steps)), 1) if steps else 1


def _on_grid(loss: Series, onset: int, baseline: float, offset: IntArray) -> FloatArray:
    """Return the last value logged at or before each place and after the one before it."""
    place = np.searchsorted(loss.step, onset + offset, side="right") - 1
    spacing = int(offset[1] - offset[0]) if len(offset) > 1 else 1
    interval = int(np.median(np.diff(loss.step))) if len(loss) > 1 else 1
    there = (place >= 0) & (loss.step[place.clip(min=0)] > onset + offset - max(spacing, interval))
    value = np.where(np.isfinite(loss.value), loss.value, np.inf)[place.clip(min=0)] / baseline
    return np.where(there, value, np.nan)


def _band(offset: IntArray, table: FloatArray, left_out: tuple[tuple[str, str], ...]) -> Band:
    runs = np.sum(~np.isnan(table), axis=0)
    quartiles = np.full((3, len(offset)), np.nan)
    for at in np.flatnonzero(runs):
        column = table[:, at]
        wanted = (0.25, 0.5, 0.75) if runs[at] >= LEAST else (np.nan, 0.5, np.nan)
        quartiles[:, at] = [np.nan if np.isnan(q) else _quantile(column[~np.isnan(column)], q) for q in wanted]
    return Band(offset, quartiles[1], quartiles[0], quartiles[2], runs, len(table), left_out)


def _quantile(value: FloatArray, q: float) -> float:
    """Return the averaged inverted distribution function, which averages no infinity with a number by a factor 0."""
    ordered = np.sort(value)
    place = q * len(ordered)
    below = ordered[max(int(np.ceil(place)) - 1, 0)]
    above = ordered[min(int(np.floor(place)), len(ordered) - 1)]
    return float((below + above) / 2)
