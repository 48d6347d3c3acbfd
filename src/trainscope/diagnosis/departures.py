"""When did a quantity leave its usual range? Arrays to arrays; many series of equal steps at once.

The reference is the level just before each point, never an extrapolated trend: a forecast of a convex decay alarms
on healthy noise (measured: 9 times in 10,000 steps, the level 0 times). A steady trend shifts all residuals alike,
and their median takes it out: attention logits and entropy, which grow and fall all through a healthy training, never
alarmed in 12 controls when asked at every step (95 %: at most 8 in 10,000), where the CUSUM of the loss, which takes a
rise for news, alarms in each of them (docs/evidence.md, "Early warnings").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from trainscope.core.robust import MAD_TO_SIGMA
from trainscope.core.run import FloatArray, IntArray

LEVEL = 25
"""Points of the level: long enough to outvote a burst, short enough to follow a decay."""
HISTORY = 150
"""Points before the window that say what is usual."""
LEAST_HISTORY = 24
SCORE = 8.0
"""Scaled MADs. On 22 healthy runs of 300 steps no loss and no gradient norm reached it."""
BEYOND = 1.25
"""A departure must also be this many times as large as anything in the history: per-layer statistics have heavy
tails, and hundreds of them are looked at."""
BESIDE_SCORE, BESIDE_BEYOND = 4.0, 1.5
"""The same two of a quantity that is looked at for one reason at one step: few looks need less, and a clear lead."""
LEAST_SIGMA = 0.02
"""Of the level (or in the logarithm), so that a smooth series does not alarm at a ripple."""


@dataclass(frozen=True, slots=True)
class Departure:
    """One stretch outside the usual range. Steps, and values in the quantity's own unit."""

    step: int
    end_step: int
    usual: float
    value: float
    """The farthest."""
    score: float
    """Scaled MADs at the farthest point."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What counts as leaving the usual range."""

    up: bool = True
    down: bool = False
    log: bool = True
    """Judge the logarithm of the value plus `offset`."""
    offset: float = 0.0
    least: float = 0.4
    """Smallest change: of the logarithm (0.4 is half as much again), else in the unit of the value."""
    score: float = SCORE
    """Scaled MADs."""
    beyond: float = BEYOND
    """Times the farthest point of the history."""


def departures(step: IntArray, values: FloatArray, watch: Watch, first: int, last: int) -> list[Departure | None]:
    """Return the first departure of each series inside a window of steps, None where there is none.

    Parameters
    ----------
    step : (n,) int64 array
        Increasing.
    values : (k, n) float64 array
        Non-finite values are no departures and are not part of what is usual.
    watch : Watch
    first, last : int
        The window. What is usual is taken from up to 150 points before it.
    """
    scaled = _scaled(values, watch)
    whole = np.isfinite(scaled).all(axis=1)
    found: list[Departure | None] = [None] * len(values)
    for k in np.flatnonzero(~whole):
        good = np.isfinite(scaled[k])
        found[k] = _of_finite(step[good], values[k : k + 1, good], scaled[k : k + 1, good], watch, first, last)[0]
    if whole.any():
        together = _of_finite(step, values[whole], scaled[whole], watch, first, last)
        for k, one in zip(np.flatnonzero(whole), together, strict=True):
            found[k] = one
    return found


def _scaled(values: FloatArray, watch: Watch) -> FloatArray:
    with np.errstate(all="ignore"):
        return np.asarray(np.log(values + watch.offset) if watch.log else values)


def _of_finite(
    step: IntArray, values: FloatArray, scaled: FloatArray, watch: Watch, first: int, last: int
) -> list[Departure | None]:
    begin, end = int(np.searchsorted(step, first)), int(np.searchsorted(step, last, side="right"))
    start = max(0, begin - HISTORY)
    past = begin - start
    if past < LEAST_HISTORY or begin == end:
        return [None] * len(values)
    step, values, scaled = step[start:end], values[:, start:end], scaled[:, start:end]
    width = min(LEVEL, past // 2)
    level = np.median(sliding_window_view(scaled[:, :-1], width, axis=1), axis=-1)
    rest = scaled[:, width:] - level
    usual = rest[:, : past - width]
    centre = np.median(usual, axis=1, keepdims=True)
    spread = MAD_TO_SIGMA * np.median(np.abs(usual - centre), axis=1, keepdims=True)
    floor = LEAST_SIGMA * (1.0 if watch.log else np.abs(np.median(level, axis=1, keepdims=True)))
    sigma = np.maximum(np.maximum(spread, floor), np.finfo(np.float64).tiny)
    most = watch.beyond * np.max(np.abs(usual - centre), axis=1, keepdims=True)
    signed = (rest - centre)[:, past - width :]
    size = np.maximum(signed if watch.up else -np.inf, -signed if watch.down else -np.inf)
    out = (size >= watch.score * sigma) & (size >= most) & (size >= watch.least)
    score = size / sigma
    return [
        _first(out[k], score[k], step[past:], values[k, past:], level[k, past - width :], watch)
        for k in range(len(values))
    ]


def _first(
    out: NDArray[np.bool_], score: FloatArray, step: IntArray, value: FloatArray, level: FloatArray, watch: Watch
) -> Departure | None:
    at = np.flatnonzero(out)
    if not len(at):
        return None
    begin = int(at[0])
    gaps = np.flatnonzero(np.diff(at) > 2)
    end = int(at[gaps[0]] if len(gaps) else at[-1])
    peak = begin + int(np.argmax(np.where(out[begin : end + 1], score[begin : end + 1], -np.inf)))
    usual = float(level[begin])
    return Departure(
        int(step[begin]),
        int(step[end]),
        float(np.exp(usual) - watch.offset) if watch.log else usual,
        float(value[peak]),
        float(score[peak]),
    )
