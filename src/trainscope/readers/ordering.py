"""What a step counter does besides counting up: resumes, restarts, shuffled rows, repeated steps.

Algorithm
    Only the rows of the densest metric are judged, so that evaluations with a step of their own disturb
    nothing. Each place where the step falls is looked at in turn. If the steps after it were mostly
    there before, the run was written again from there: a *restart* if that is where the run began, else
    a *rewind* (a resume from a checkpoint), whose earlier rows from that step on are superseded. If they
    are new, rows merely came late: *out of order*. A file where the step falls all the time (median rise
    of less than five rows) has several writers: its rows are sorted and nothing is superseded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.run import IntArray

_SHORT_RISE = 5
"""Rows: resumed runs log more than this between two falls, shuffled rows less."""
_MOST_FALLS = 1000
"""No run is resumed so often."""
_NEAR_START = 0.02
"""Share of the range so far that still counts as the start."""


@dataclass(frozen=True, slots=True)
class Seam:
    """A place where the run was taken up again."""

    kind: str
    """``rewind`` or ``restart``."""
    row: int
    """Index of the first row after it."""
    start_step: int
    """First step written again."""
    end_step: int
    """Last step written before."""
    count: int
    """Rows before it, from `start_step` on: those that the later ones replace."""


@dataclass(frozen=True, slots=True)
class Late:
    """Rows that stand after rows with a larger step, without replacing any."""

    count: int
    start_step: int
    end_step: int


def find_seams(step: IntArray) -> tuple[list[Seam], Late | None]:
    """Return the seams of one metric's steps in file order, and the rows that came late.

    Parameters
    ----------
    step : (n,) int64 array
        As written.
    """
    falls = np.flatnonzero(step[1:] < step[:-1]) + 1
    if not len(falls):
        return [], None
    bounds = np.concatenate(([0], falls, [len(step)]))
    short = float(np.median(np.diff(bounds))) < _SHORT_RISE
    if len(falls) > _MOST_FALLS or (len(falls) >= _SHORT_RISE and short):
        peak = np.maximum.accumulate(step)
        return [], _late(step, step < peak)
    seams: list[Seam] = []
    late = np.zeros(len(step), bool)
    gone = np.zeros(len(step), bool)
    begin = 0
    for fall, stop in zip(falls.tolist(), bounds[2:].tolist(), strict=True):
        before, again = step[begin:fall][~gone[begin:fall]], step[fall:stop]
        if again[0] >= before.max():
            continue
        seam = _judge(before, again, fall, frequent=len(falls) > 2 + 0.02 * len(step))
        if seam is None:
            late[fall:stop] |= again < before.max()
            continue
        seams.append(seam)
        if seam.kind == "restart":
            begin = fall
        else:
            gone[begin:fall] |= step[begin:fall] >= seam.start_step
    return seams, _late(step, late) if late.any() else None


def _late(step: IntArray, mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Late:
    return Late(int(mask.sum()), int(step[mask].min()), int(step[mask].max()))


def _judge(before: IntArray, again: IntArray, row: int, *, frequent: bool) -> Seam | None:
    """Return the seam between two stretches of a run, None if the second only came late."""
    first, peak, origin = int(again[0]), int(before.max()), int(before[0])
    replaced = before[before >= first]
    overlap = again[again <= peak]
    exact = float(np.isin(overlap, replaced).mean())
    if exact < 0.5 and (frequent or len(replaced) < 3 or len(again) < 2 * _SHORT_RISE):
        return None
    rises = np.diff(before)
    interval = int(np.median(rises[rises > 0])) if (rises > 0).any() else 1
    near = first <= origin + max(interval, _NEAR_START * (peak - origin))
    # A file that itself begins with a resume, far from 0, can be resumed there again.
    fresh = first <= 10 * interval or abs(origin) <= 10 * interval
    kind = "restart" if near and fresh else "rewind"
    return Seam(kind, row, first, peak, len(replaced))


def superseded(step: IntArray, seams: list[Seam]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return (n,) which rows a later rewind replaces; `Seam.row` must be an index into `step`."""
    gone = np.zeros(len(step), bool)
    for seam in seams:
        if seam.kind == "rewind":
            gone[: seam.row] |= step[: seam.row] >= seam.start_step
    return gone
