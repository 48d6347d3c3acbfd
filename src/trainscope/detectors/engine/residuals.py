"""Each point of a series against its recent past, and which points stand out of the run's own noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.robust import hop_for, mad_sigma, quantum, trailing_mad_sigma, trailing_median
from trainscope.core.tails import MANY, SHORT_BUDGET, SHORT_TAILED, fit_tail
from trainscope.detectors.engine.events import Limits
from trainscope.detectors.engine.gaps import few_bursts

FloatArray = NDArray[np.float64]

START = 8
"""Points of history before anything is judged."""
LEVEL = 25
"""Points of the short level; short enough to follow a decay, long enough to outvote a burst."""
NOISE = 200
"""Points that the noise is measured on, before and after."""
MEAN_NOISE = 0.06
"""Noise, as a share of the level, up to which a loss is taken for the mean of many samples."""


@dataclass(frozen=True, slots=True, eq=False)
class Residuals:
    """Each point against its recent past."""

    level: FloatArray
    """Median of the 25 points before, NaN for the first ``START``."""
    sigma: FloatArray
    """One scaled MAD of the local noise, the larger of before and after; at least the rounding step."""
    z: FloatArray
    """Height in sigmas above the level before or the median around, whichever is lower: on a steep decline the
    level before is too high, in a long burst the median around is. 0 where there is no level yet."""
    phi: float
    """Lag-1 autocorrelation of z."""
    scale: FloatArray
    """What a rise is measured against: the level's size, at least a tenth of the run's range, and of the first
    value where that looks like a cross-entropy: a loss at its floor has no spikes worth a look."""


def residuals(value: FloatArray) -> Residuals:
    """Compare each point with the points before it.

    Parameters
    ----------
    value : (n,) float64 array
        Finite values, n > START.
    """
    hop = hop_for(len(value))
    level = trailing_median(value, max(LEVEL, hop), hop, START)
    centred = np.concatenate((level[LEVEL // 2 + 1 :], np.full(LEVEL // 2 + 1, level[-1])))[: len(value)]
    judged = value[START:] - centred[START:]
    before = trailing_mad_sigma(judged, NOISE, max(5, hop), START)
    after = trailing_mad_sigma(judged[::-1], NOISE, max(5, hop), START)[::-1]
    early = mad_sigma(judged[:60])
    sigma = np.fmax(np.fmax(before, after), np.where(np.arange(len(judged)) < 60, early, 0.0))
    low, high = np.percentile(value, [5.0, 95.0])
    first = float(np.max(value[:3]))
    least = max(0.1 * (high - low), 0.1 * first if 0.3 <= first <= 20.0 else 0.0)
    scale = np.fmax(np.abs(level), least)
    sigma = np.fmax(sigma, mad_sigma(judged / np.fmax(scale[START:], 1e-300)) * scale[START:])
    sigma = np.concatenate((np.full(START, np.inf), sigma))
    sigma = np.fmax(np.nan_to_num(sigma, nan=np.inf), 1e-3 * np.nan_to_num(scale, nan=np.inf))
    sigma = np.fmax(sigma, max(quantum(value), float(np.finfo(np.float64).tiny)))
    whole = np.arange(len(value)) > LEVEL // 2  # before, the window has not both its sides
    lower = np.where(whole, np.fmin(level, centred), level)
    z = np.where(np.isfinite(sigma), (value - np.nan_to_num(lower)) / sigma, 0.0)
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


def _alone(body: FloatArray, r: Residuals, limits: Limits) -> NDArray[np.intp]:
    """Return the index of the highest residual if nothing else in the run comes near it and the rise is large.

    Of noise with a tail index of 3, one run in 500 has a largest value 8 times its second largest, and one in 200
    one 6 times. The latter is enough where the noise is small beside the level: such a loss is the mean of many
    samples, which has a short tail.
    """
    top = int(np.argmax(body))
    rest = np.concatenate((body[: max(0, top - 10)], body[top + 11 :]))
    if len(rest) < 20:
        return np.empty(0, dtype=np.intp)
    at = top + START
    rise, least = r.z[at] * r.sigma[at], limits.min_rise * r.scale[at]
    times = body[top] / max(float(rest.max()), 2.0)
    lonely = rise > 10.0 * least and times >= limits.lonely
    if r.sigma[at] <= MEAN_NOISE * r.scale[at]:
        lonely |= rise > 20.0 * least > 0.0 and times >= 0.75 * limits.lonely
    return np.array([top] if lonely else [], dtype=np.intp)


def _twice(body: FloatArray) -> NDArray[np.bool_]:
    """Tell which residuals are twice as high as all that are more than 10 points away, in short-tailed noise."""
    out = np.zeros(len(body), dtype=bool)
    top = int(np.argmax(body))
    near = slice(max(0, top - 10), top + 11)
    rest = np.concatenate((body[: near.start], body[near.stop :]))
    if len(rest) >= MANY and rest.max() <= SHORT_TAILED:
        out[near] = body[near] >= 2.0 * max(float(rest.max()), 2.0)
    return out


def standing_out(value: FloatArray, r: Residuals, limits: Limits) -> NDArray[np.intp]:
    """Return the indices of the points that stand out of this run's own noise."""
    white = r.z - r.phi * np.concatenate(([0.0], np.maximum(r.z[:-1], 0.0)))
    body = white[START:]
    body = (body - np.median(body)) / max(mad_sigma(body), 1e-12)
    tail = fit_tail(body)
    budget = np.log(limits.false_alarms) - np.log(max(tail.n, 1))
    candidate = np.flatnonzero(body > 2.0)
    log_p = np.zeros(len(body))
    log_p[candidate] = tail.log_probability(body[candidate])
    hit = log_p < budget
    hit |= (log_p < budget + np.log(SHORT_BUDGET)) & _twice(body)
    for length in (3, 5):
        if len(log_p) >= length:
            worst = np.max(np.lib.stride_tricks.sliding_window_view(log_p, length), axis=1)
            for begin in np.flatnonzero(0.8 * length * worst < budget):
                hit[begin : begin + length] = True
    hit[_alone(body, r, limits)] = True
    rise, least = (r.z * r.sigma)[START:], limits.min_rise * r.scale[START:]
    hit &= r.z[START:] > 5.0
    if limits.min_rise > 0.0:
        hit |= few_bursts(rise / np.fmax(r.scale[START:], 1e-300))
    higher = value[START:] > r.level[START:]
    return np.flatnonzero(hit & higher & (rise > least)) + START
