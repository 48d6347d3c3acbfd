"""When did a loss leave its level, and did it come back? The engine of four detectors.

Spikes, unrecovered spikes, level shifts and divergence are one family of events: the loss rises above
where it was. They are found here once, by class, so that one event is one finding; the modules
``spikes``, ``unrecovered_spike``, ``loss_shift`` and ``divergence`` each report their own class.

Three measures, in this order:

1. *Rise at the end*: block medians (1 % of the run each) at the end against the best block so far.
2. *Jumps*: each point against the median of the points before it, in scaled MADs, whitened by the lag-1
   autocorrelation; a point or a burst counts when fewer than ``false_alarms`` such are expected in the
   whole run under the tail that the run's own noise has (:mod:`trainscope.core.tails`).
3. *Shifts*: a one-sided CUSUM against a level-only reference (never an extrapolated trend: on a convex
   decay that alarms on noise alone), confirmed by the medians on both sides.

Rises only: a falling loss is never an event. A rise counts only if it is also large enough to matter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trainscope.core.change import cusum_alarms
from trainscope.core.robust import (
    block_medians,
    difference_sigma,
    hop_for,
    lag1,
    mad_sigma,
    trailing_mad_sigma,
    trailing_median,
)
from trainscope.core.run import Series
from trainscope.core.tails import fit_tail

FloatArray = NDArray[np.float64]

START = 8
"""Points of history before anything is judged."""
LEVEL = 25
"""Points of the short level; short enough to follow a decay, long enough to outvote a burst."""
NOISE = 200
"""Points that the noise is measured on, before and after."""

PASSES = 12
"""Most rounds of taking events out and looking again."""


class Shape(StrEnum):
    """How an excursion ended."""

    SPIKE = "spike"
    UNRECOVERED = "unrecovered"
    SHIFT = "shift"
    DIVERGENCE = "divergence"


@dataclass(frozen=True, slots=True)
class Limits:
    """What counts as an excursion; the parameters of the four detectors together."""

    false_alarms: float = 0.001
    """Expected number of false jumps in a whole healthy run, whatever its length."""
    min_rise: float = 0.03
    """Smallest jump worth a finding, as a fraction of the level."""
    end_rise: float = 0.12
    """Smallest rise at the end of the run, as a fraction of the best level."""
    end_sigmas: float = 8.0
    """Smallest rise at the end, in standard errors of a block median."""
    shift_rise: float = 0.06
    """Smallest level shift, as a fraction of the level."""


@dataclass(frozen=True, slots=True)
class Excursion:
    """One rise of a loss. Indices are into the finite points of the series."""

    shape: Shape
    start: int
    peak: int
    end: int
    """Last point of the excursion, included."""
    level: float
    """Where the loss was before, in its own unit."""
    top: float
    """Its largest value during the excursion."""
    after: float
    """Where it was at the end, or after the excursion."""
    score: float
    """Height of the peak in scaled MADs, or of the rise in standard errors."""


@dataclass(frozen=True, slots=True, eq=False)
class Residuals:
    """Each point against its recent past."""

    level: FloatArray
    """Median of the 25 points before, NaN for the first ``START``."""
    sigma: FloatArray
    """One scaled MAD of the local noise, the larger of before and after."""
    z: FloatArray
    """(value - level) / sigma; 0 where there is no level yet."""
    phi: float
    """Lag-1 autocorrelation of z."""
    scale: FloatArray
    """What a rise is measured against: the level's size, or a tenth of the run's range."""


def residuals(value: FloatArray) -> Residuals:
    """Compare each point with the points before it.

    Parameters
    ----------
    value : (n,) float64 array
        Finite values, n > START.
    """
    hop = hop_for(len(value))
    level = trailing_median(value, max(LEVEL, hop), hop, START)
    judged = value[START:] - level[START:]
    before = trailing_mad_sigma(judged, NOISE, max(5, hop), START)
    after = trailing_mad_sigma(judged[::-1], NOISE, max(5, hop), START)[::-1]
    early = mad_sigma(judged[:60])
    sigma = np.fmax(np.fmax(before, after), np.where(np.arange(len(judged)) < 60, early, 0.0))
    low, high = np.percentile(value, [5.0, 95.0])
    scale = np.fmax(np.abs(level), 0.1 * (high - low))
    sigma = np.concatenate((np.full(START, np.inf), sigma))
    sigma = np.fmax(np.nan_to_num(sigma, nan=np.inf), 1e-3 * np.nan_to_num(scale, nan=np.inf))
    sigma = np.fmax(sigma, np.finfo(np.float64).tiny)
    z = np.where(np.isfinite(sigma), (value - np.nan_to_num(level)) / sigma, 0.0)
    return Residuals(level, sigma, z, _calm_lag1(z[START:]), scale)


def _calm_lag1(z: FloatArray) -> float:
    """Lag-1 autocorrelation over the pairs without an outlier: the decay after an incident is no noise."""
    calm = np.abs(z) < 3.0
    pair = calm[1:] & calm[:-1]
    if np.count_nonzero(pair) < 8:
        return 0.0
    now, then = z[1:][pair], z[:-1][pair]
    centre = float(np.median(z[calm]))
    power = float((then - centre) @ (then - centre))
    return min(0.95, max(0.0, float((now - centre) @ (then - centre)) / power)) if power > 0 else 0.0


def _jump_points(value: FloatArray, r: Residuals, limits: Limits) -> NDArray[np.intp]:
    """Indices of the points that stand out of this run's own noise."""
    white = r.z - r.phi * np.concatenate(([0.0], np.maximum(r.z[:-1], 0.0)))
    body = white[START:]
    body = body / max(mad_sigma(body), 1e-12)
    tail = fit_tail(body)
    budget = np.log(limits.false_alarms) - np.log(max(tail.n, 1))
    candidate = np.flatnonzero(body > 2.0)
    log_p = np.zeros(len(body))
    log_p[candidate] = tail.log_probability(body[candidate])
    hit = log_p < budget
    for length in (3, 5):
        if len(log_p) >= length:
            worst = np.max(np.lib.stride_tricks.sliding_window_view(log_p, length), axis=1)
            for begin in np.flatnonzero(0.8 * length * worst < budget):
                hit[begin : begin + length] = True
    points = np.flatnonzero(hit) + START
    rise = value[points] - r.level[points]
    return points[(rise > limits.min_rise * r.scale[points]) & (r.z[points] > 5.0)]


def jumps(value: FloatArray, limits: Limits) -> list[Excursion]:
    """Find the jumps of a series of finite values, merged where they touch, in order of their start."""
    return _joined(_peeled(value, limits))


def _peeled(value: FloatArray, limits: Limits) -> list[Excursion]:
    """Peel events off until the rest is quiet: an incident must not hide the next one in its noise."""
    kept = np.arange(len(value))
    found: list[Excursion] = []
    for _ in range(PASSES):
        if len(kept) < START + 4:
            break
        events = _jumps_once(value[kept], limits)
        for e in events:
            start, peak, end = (int(kept[i]) for i in (e.start, e.peak, e.end))
            found.append(replace(e, start=start, peak=peak, end=end))
        if not events:
            break
        quiet = np.ones(len(kept), dtype=bool)
        for e in events:
            quiet[e.start : e.end + 1] = False
        kept = kept[quiet]
    return found


def _jumps_once(value: FloatArray, limits: Limits) -> list[Excursion]:
    r = residuals(value)
    points = _jump_points(value, r, limits)
    if not len(points):
        return []
    found: list[Excursion] = []
    for group in np.split(points, np.flatnonzero(np.diff(points) > 10) + 1):
        if found and group[0] <= found[-1].end:
            if value[group].max() <= found[-1].top:
                continue
            group = np.arange(found[-1].start, group[-1] + 1)
            found.pop()
        found.append(_classify(value, r, group))
    return found


def _classify(value: FloatArray, r: Residuals, group: NDArray[np.intp]) -> Excursion:
    n, start = len(value), int(group[0])
    level, sigma = float(r.level[start]), float(r.sigma[start])
    while start > START and value[start - 1] > level + 3 * sigma and r.z[start - 1] > 2.0:
        start -= 1
    level = float(r.level[start])
    last = int(group[-1])
    back = level + max(3.0 * sigma, 0.03 * float(r.scale[start]), 0.15 * (float(value[group].max()) - level))
    rest = value[last + 1 :]
    calm = np.flatnonzero(_forward_median(rest, 5) <= back)
    peak = start + int(np.argmax(value[start : last + 1]))
    common = (start, peak)
    top = float(value[peak])
    score = float(r.z[peak])
    if len(calm):
        end = last + int(calm[0])
        shape = Shape.SPIKE if end - start <= max(60, n // 10) else Shape.UNRECOVERED
        return Excursion(shape, *common, end, level, top, float(np.median(value[end : end + 5])), score)
    after = float(np.median(value[-max(3, len(rest) // 2) :])) if len(rest) else float(value[-1])
    if len(rest) < 3:
        lasting = last - start >= 2 or top - level > 3.0 * float(r.scale[start])
        return Excursion(
            Shape.DIVERGENCE if lasting else Shape.SPIKE, *common, n - 1, level, top, after, score
        )
    shape = Shape.UNRECOVERED if top - level >= 2.0 * (after - level) else Shape.SHIFT
    return Excursion(shape, *common, n - 1, level, top, after, score)


def _forward_median(value: FloatArray, width: int) -> FloatArray:
    """Median of each point and the ones after it, `width` in all (fewer at the end)."""
    if not len(value):
        return value
    padded = np.concatenate((value, np.repeat(value[-1], width - 1)))
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(padded, width), axis=1))


def _end_rise(value: FloatArray, limits: Limits) -> Excursion | None:
    n = len(value)
    size = max(2, n // 100) if n < 500 else max(5, n // 100)
    blocks = block_medians(value, size)
    if len(blocks) < 10:
        return None
    best = int(np.argmin(blocks[:-1]))
    if best >= len(blocks) - 2:
        return None
    near = blocks[max(0, best - 1) : best + 2]
    level = float(np.median(near))
    tail = blocks[-max(2, len(blocks) // 20) :]
    rise = float(np.median(tail)) - level
    sigma = max(difference_sigma(blocks), 1e-4 * abs(level))
    drop = max(0.0, float(blocks[0]) - level)
    large = rise >= limits.end_rise * abs(level) or (
        drop > 0 and rise >= 0.5 * drop and rise >= 0.03 * abs(level)
    )
    if rise <= 0 or not large or rise < limits.end_sigmas * sigma or (tail < level + 0.3 * rise).any():
        return None
    low = np.flatnonzero(blocks <= level + max(3.0 * sigma, 0.1 * rise))
    start = min(n - 1, (int(low[-1]) + 1) * size) if len(low) else 0
    peak = start + int(np.argmax(value[start:]))
    after = float(np.median(tail))
    return Excursion(
        Shape.DIVERGENCE, start, peak, n - 1, level, float(value[peak]), after, float(rise / sigma)
    )


def _shifts(value: FloatArray, limits: Limits) -> list[Excursion]:
    n = len(value)
    if n < 60:
        return []
    window = min(NOISE, max(30, n // 5), n // 2)
    hop = max(5, hop_for(n))
    level = trailing_median(value, max(window, hop), hop, 30)
    judged = value[30:] - level[30:]
    sigma = np.fmax(trailing_mad_sigma(judged, window, hop, 20), mad_sigma(judged[:60]))
    sigma = np.fmax(np.nan_to_num(sigma, nan=np.inf), 1e-3 * np.abs(level[30:]))
    z = np.clip(judged / np.fmax(sigma, np.finfo(np.float64).tiny), -4.0, 4.0)
    phi = min(lag1(z), 0.8)
    inflate = (1.0 + phi) / (1.0 - phi)
    found = []
    for onset, alarm in cusum_alarms(z, 0.5, 24.0 * inflate):
        event = _confirm_shift(value, onset + 30, alarm + 30, inflate, limits)
        if event is not None and (not found or event.start > found[-1].end):
            found.append(event)
    return found


def _confirm_shift(
    value: FloatArray, onset: int, alarm: int, inflate: float, limits: Limits
) -> Excursion | None:
    n = len(value)
    width = max(10, min(50, n // 10))
    before = value[max(0, onset - width) : onset]
    after = value[onset : onset + 2 * width]
    if len(before) < 10 or len(after) < width:
        return None
    level, new = float(np.median(before)), float(np.median(after))
    noise = max(difference_sigma(before), difference_sigma(after), mad_sigma(before - level) * 0.5)
    error = 1.25 * noise * np.sqrt(inflate * (1.0 / len(before) + 1.0 / len(after)))
    rise = new - level
    second = float(np.median(after[len(after) // 2 :]))
    if rise < limits.shift_rise * abs(level) or rise < 8.0 * error or second - level < 0.4 * rise:
        return None
    rest = _forward_median(value[alarm:], 5)
    back = np.flatnonzero(rest <= level + 0.3 * rise)
    end = alarm + int(back[0]) if len(back) else n - 1
    peak = onset + int(np.argmax(value[onset : end + 1]))
    return Excursion(
        Shape.SHIFT, onset, peak, end, level, float(value[peak]), new, float(rise / max(error, 1e-300))
    )


@lru_cache(maxsize=32)
def excursions(series: Series, limits: Limits) -> tuple[Excursion, ...]:
    """Find every excursion of the finite points of `series`, in order of their start.

    A divergence swallows what lies inside it, a jump swallows the shift that it starts, and jumps
    that touch are one event.
    """
    value = series.finite().value
    if len(value) < START + 2:
        return ()
    diverged = _end_rise(value, limits)
    found = [diverged] if diverged is not None else []
    for event in jumps(value, limits):
        if not _overlaps(event, found):
            found.append(event)
    for event in _shifts(value, limits):
        if not _overlaps(event, found):
            found.append(event)
    return tuple(sorted(found, key=lambda e: (e.start, e.end)))


def _overlaps(event: Excursion, found: list[Excursion]) -> bool:
    margin = 5 + (event.end - event.start) // 2
    return any(event.start <= other.end and event.end >= other.start - margin for other in found)


def _joined(events: list[Excursion]) -> list[Excursion]:
    """Merge jumps that touch: the slow way back of a spike is not a second one."""
    joined: list[Excursion] = []
    for event in sorted(events, key=lambda e: e.start):
        last = joined[-1] if joined else None
        if last is None or event.start > last.end + 5:
            joined.append(event)
            continue
        higher = max(last, event, key=lambda e: e.top)
        end = max(last.end, event.end)
        shape = event.shape if event.end >= last.end else last.shape
        joined[-1] = replace(
            higher, shape=shape, start=last.start, end=end, level=last.level, after=event.after
        )
    return joined
