"""Alarms against the truth: which belong to one event, which to the fault, and what a threshold would have found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

DELAYS = (1, 5, 10, 20, 50, 100)
"""Steps after the onset at which is asked whether the fault has been found, the step of the onset included."""
APART = 20
"""Alarms at most this many steps apart are one."""
QUIET = 100
"""A detection counts only if nothing alarmed in as many steps before the onset: else it was luck."""
WARM_UP = 200
"""Steps that are not judged."""


def peaks(score: FloatArray, apart: int = APART, most: int = 25) -> list[float]:
    """Return the highest scores of a run, highest first, no two within `apart` steps.

    As many of them as lie at or above a threshold are the alarms that it would have given.
    """
    left = np.array(score, dtype=np.float64)
    found: list[float] = []
    while len(found) < most:
        top = int(np.argmax(left))
        if not np.isfinite(left[top]):
            break
        found.append(float(left[top]))
        left[max(0, top - apart) : top + apart + 1] = -np.inf
    return found


def events(spans: Iterable[tuple[int, int]], apart: int = APART) -> list[tuple[int, int]]:
    """Merge spans of steps, last step included, that touch or are at most `apart` steps apart."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1] + apart:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def levels(score: FloatArray, onset: int) -> list[float]:
    """Return the highest score in the quiet time before the onset, then within each of ``DELAYS`` after it.

    With these, :func:`delay_at` answers for any threshold.
    """
    before = float(np.max(score[onset - QUIET : onset]))
    return [before, *(float(np.max(score[onset : onset + d])) for d in DELAYS)]


def delay_at(levels_: Sequence[float], threshold: float) -> float:
    """Return the first of ``DELAYS`` by which the threshold was reached: inf never, NaN if it was before the onset."""
    if levels_[0] >= threshold:
        return float("nan")
    return next((float(d) for d, top in zip(DELAYS, levels_[1:], strict=True) if top >= threshold), float("inf"))


def threshold_for(all_peaks: Sequence[Sequence[float]], allowed: int) -> float:
    """Return the lowest threshold that gives at most `allowed` alarms in these healthy runs.

    Parameters
    ----------
    all_peaks : sequence of sequences
        What :func:`peaks` found in each run; `allowed` must be below the number that it may return of one.
    """
    ranked = sorted((p for run in all_peaks for p in run), reverse=True)
    if allowed >= len(ranked):
        return -np.inf
    return float(np.nextafter(ranked[allowed], np.inf))
