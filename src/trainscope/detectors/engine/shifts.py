"""Slow rises: the level at the end of a run against its best, and lasting shifts in between."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trainscope.core.change import CLIP, SLACK, cusum_alarms, inflation
from trainscope.core.robust import (
    block_medians,
    difference_sigma,
    hop_for,
    lag1,
    mad_sigma,
    trailing_mad_sigma,
    trailing_median,
)
from trainscope.detectors.engine.events import Excursion, Limits, Shape
from trainscope.detectors.engine.jumps import forward_median
from trainscope.detectors.engine.residuals import NOISE

FloatArray = NDArray[np.float64]
SHORTEST = 20
"""Points of a run whose level can be compared with its first values."""
SOARED = 10.0
"""Times the very first value that the next ones are: it is what the model was before any update."""
SHORT_RISE = 2.0
"""Rise above the first values, as a fraction of them, that counts in a run of fewer than 100 points."""


def end_rise(value: FloatArray, limits: Limits) -> Excursion | None:
    """Return the divergence with which the run ends, if it does: last blocks against the best block."""
    n = len(value)
    size = max(2, n // 20) if n < 80 else max(4, n // 100)
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
    sigma = max(difference_sigma(blocks), 1e-4 * abs(level), float(np.finfo(np.float64).tiny))
    drop = max(0.0, float(blocks[0]) - level)
    scale = max(abs(level), 0.5 * abs(float(np.median(blocks))))
    large = rise >= limits.end_rise * scale or (drop > 0 and rise >= 0.5 * drop and rise >= 0.03 * scale)
    if rise <= 0 or not large or rise < limits.end_sigmas * sigma or (tail < level + 0.3 * rise).any():
        return None
    low = np.flatnonzero(blocks <= level + max(3.0 * sigma, 0.1 * rise))
    start = min(n - 1, (int(low[-1]) + 1) * size) if len(low) else 0
    settled = blocks[int(np.argmax(blocks <= level + 0.3 * rise)) : start // size]
    if len(settled) and np.mean(settled > level + 0.7 * rise) > 0.03:
        return None
    peak = start + int(np.argmax(value[start:]))
    after = float(np.median(tail))
    return Excursion(Shape.DIVERGENCE, start, peak, n - 1, level, float(value[peak]), after, float(rise / sigma))


def above_start(value: FloatArray, start_rise: float, sigmas: float) -> Excursion | None:
    """Return the stretch of half the run or more that stands above the first values, if there is one."""
    n = len(value)
    if n < SHORTEST or value[0] <= 0:
        return None
    if n < 100:  # may begin low by chance and wander
        start_rise = max(start_rise, SHORT_RISE)
    size = max(2, n // 100)
    first = float(np.median(value[:3]))
    error = 1.25 * difference_sigma(value) / np.sqrt(3.0)
    least = first + max(start_rise * abs(first), sigmas * error)
    if first > SOARED * value[0]:  # the first update did it, and the noise since is of another size
        first = float(value[0])
        least = SOARED * first
    blocks = block_medians(value, size)
    inside = np.concatenate(([False], blocks > least, [False]))
    edges = np.flatnonzero(np.diff(inside.astype(np.int8)))
    if not len(edges):
        return None
    begins, ends = edges[::2], edges[1::2]
    longest = int(np.argmax(ends - begins))
    begin, end = int(begins[longest]), int(ends[longest])
    if end - begin < 0.5 * len(blocks):
        return None
    start, stop = begin * size, min(n - 1, end * size)
    peak = start + int(np.argmax(value[start : stop + 1]))
    stood = float(np.median(blocks[begin:end]))
    return Excursion(Shape.DIVERGENCE, start, peak, stop, first, float(value[peak]), stood, (stood - first) / error)


def shifts(value: FloatArray, limits: Limits) -> list[Excursion]:
    """Return the lasting upward shifts: CUSUM alarms that the medians on both sides confirm."""
    n = len(value)
    if n < 60:
        return []
    window = min(NOISE, max(30, n // 5), n // 2)
    hop = max(5, hop_for(n))
    level = trailing_median(value, max(window, hop), hop, 30)
    judged = value[30:] - level[30:]
    early = np.where(np.arange(len(judged)) < 60, mad_sigma(judged[:60]), 0.0)
    sigma = np.fmax(trailing_mad_sigma(judged, window, hop, 20), early)
    sigma = np.fmax(np.nan_to_num(sigma, nan=np.inf), 1e-3 * np.abs(level[30:]))
    sigma = np.fmax(sigma, np.finfo(np.float64).tiny)
    z = np.clip(judged / sigma, -CLIP, CLIP)
    # Autocorrelation against a centred level: the lag behind a decay is no property of the noise.
    half = window // 2
    centred = np.concatenate((level[30 + half :], np.full(half, level[-1])))[: len(judged)]
    phi = min(lag1(np.clip((value[30:] - centred) / sigma, -CLIP, CLIP)), 0.8)
    inflate = inflation(phi)
    found: list[Excursion] = []
    for onset, alarm in cusum_alarms(z, SLACK, 24.0 * inflate):
        event = _confirm_shift(value, onset + 30, alarm + 30, inflate, limits)
        if event is not None and (not found or event.start > found[-1].end):
            found.append(event)
    return found


def _confirm_shift(value: FloatArray, onset: int, alarm: int, inflate: float, limits: Limits) -> Excursion | None:
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
    rest = forward_median(value[alarm:], 5)
    back = np.flatnonzero(rest <= level + 0.3 * rise)
    end = alarm + int(back[0]) if len(back) else n - 1
    peak = onset + int(np.argmax(value[onset : end + 1]))
    return Excursion(Shape.SHIFT, onset, peak, end, level, float(value[peak]), new, float(rise / max(error, 1e-300)))
