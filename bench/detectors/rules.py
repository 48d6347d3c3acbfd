"""Rules for a falling loss that other tools ship, rebuilt from what their sources and manuals say they do.

Each is turned into a score a step, so that "alarm" is "score at or above a threshold" and the threshold can be swept.
What a tool does after an alarm (a cool-down, a reset) is left out: only its first alarm of an event counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.stats import t as student

FloatArray = NDArray[np.float64]
LOOK = 20
"""Steps between two looks of the rules that judge a whole log."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One shipped rule."""

    name: str
    tool: str
    default: float
    """The threshold that the tool ships, in the unit of the score."""
    score: Callable[[FloatArray], FloatArray]
    """(runs, steps) losses to (runs, steps) scores, -inf where the rule does not judge; knows no later step."""


def _before(x: FloatArray, window: int, least: int) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of up to `window` values before each step; NaN with fewer than `least`."""
    runs, steps = x.shape
    centre = x[:, :1]
    sums = np.zeros((runs, steps + 1))
    squares = np.zeros((runs, steps + 1))
    np.cumsum(x - centre, axis=1, out=sums[:, 1:])
    np.cumsum((x - centre) ** 2, axis=1, out=squares[:, 1:])
    at = np.arange(steps)
    low = np.maximum(0, at - window)
    n = np.where(at - low >= least, at - low, np.nan)
    mean = (sums[:, at] - sums[:, low]) / n
    variance = (squares[:, at] - squares[:, low]) / n - mean**2
    return mean + centre, np.sqrt(np.maximum(variance, 1e-16))


def _judged(score: FloatArray) -> FloatArray:
    return np.where(np.isnan(score), -np.inf, score)


def _sigmas(window: int, least: int) -> Callable[[FloatArray], FloatArray]:
    def score(x: FloatArray) -> FloatArray:
        mean, sd = _before(x, window, least)
        return _judged((x - mean) / sd)

    return score


def _times_mean(window: int, least: int, in_a_row: int = 1, ago: int = 0) -> Callable[[FloatArray], FloatArray]:
    def score(x: FloatArray) -> FloatArray:
        mean, _ = _before(x, window, least)
        if ago:
            mean = np.concatenate((np.full((len(x), ago), np.nan), mean[:, :-ago]), axis=1)
        return _in_a_row(_judged(x / mean), in_a_row)

    return score


def _in_a_row(score: FloatArray, n: int) -> FloatArray:
    if n == 1:
        return score
    out = np.full_like(score, -np.inf)
    out[:, n - 1 :] = sliding_window_view(score, n, axis=1).min(axis=2)
    return out


def _ewma(x: FloatArray, weight: float, start: FloatArray) -> FloatArray:
    """Exponential mean of all values up to and including each step, from `start` (runs,) on."""
    first = (1.0 - weight) * start[:, None]
    out, _ = lfilter([weight], [1.0, weight - 1.0], x, axis=1, zi=first)
    return np.asarray(out)


def _zclip(x: FloatArray) -> FloatArray:
    warm = 25
    mean = np.concatenate((x[:, :warm].mean(1, keepdims=True), _ewma(x[:, warm:], 0.03, x[:, :warm].mean(1))), axis=1)
    squared = (x[:, warm:] - mean[:, 1:]) ** 2
    spread = x[:, :warm].var(1)
    variance = np.concatenate((spread[:, None], _ewma(squared, 0.03, spread)), axis=1)
    out = np.full_like(x, -np.inf)
    out[:, warm:] = (x[:, warm:] - mean[:, :-1]) / np.sqrt(variance[:, :-1] + 1e-12)
    return out


def _metaseq(x: FloatArray) -> FloatArray:
    out = np.full_like(x, -np.inf)
    out[:, 21:] = (x[:, 1:] / _ewma(x, 0.2, x[:, 0])[:, :-1])[:, 20:]
    return out


def _lightning(x: FloatArray) -> FloatArray:
    mean, _ = _before(x, 10, 1)
    rising = np.concatenate((np.zeros((len(x), 1), bool), x[:, 1:] > x[:, :-1]), axis=1)
    return np.where(rising, _judged(np.abs(x - mean) / mean), -np.inf)


def _megatron(x: FloatArray) -> FloatArray:
    return np.where(np.arange(x.shape[1]) < 100, -np.inf, x / x[:, :100].max(1, keepdims=True))


def _best(x: FloatArray) -> FloatArray:
    return np.asarray(x / np.minimum.accumulate(x, axis=1))


def _trainspotter_spikes(x: FloatArray) -> FloatArray:
    windows = sliding_window_view(x, 21, axis=1)
    median = np.median(windows, axis=2)
    mad = np.maximum(np.median(np.abs(windows - median[..., None]), axis=2), 1e-12)
    out = np.full_like(x, -np.inf)
    out[:, 20:] = np.abs(0.6745 * (x[:, 20:] - median) / mad)
    return out


def _trainspotter_divergence(x: FloatArray) -> FloatArray:
    out = np.full_like(x, -np.inf)
    for end in range(40, x.shape[1] + 1, LOOK):
        tail = x[:, end - max(10, end // 4) : end]
        n = tail.shape[1]
        time = np.arange(n) - (n - 1) / 2.0
        slope = tail @ time / (time @ time)
        rest = tail - tail.mean(1, keepdims=True) - slope[:, None] * time
        error = np.sqrt((rest**2).sum(1) / (n - 2) / (time @ time))
        rising = slope / error > student.ppf(0.975, n - 2)
        out[:, end - 1] = np.where(rising, tail[:, -1] / x[:, :end].min(1), -np.inf)
    return out


def _losslint_spike(x: FloatArray) -> FloatArray:
    """Ratio to the median of 25 points around, which is known 12 steps later."""
    median = np.median(sliding_window_view(x, 25, axis=1), axis=2)
    out = np.full_like(x, -np.inf)
    out[:, 24:] = x[:, 12:-12] / median
    return out


def _losslint_divergence(x: FloatArray) -> FloatArray:
    out = np.full_like(x, -np.inf)
    for end in range(20, x.shape[1] + 1, LOOK):
        tenth = end // 10
        out[:, end - 1] = np.median(x[:, end - tenth : end], axis=1) / np.median(x[:, :tenth], axis=1)
    return out


def _other_cusum(x: FloatArray) -> FloatArray:
    """Two-sided CUSUM, slack 1, of z against median and MAD of the 200 losses before, outliers included.

    Median and MAD are brought up to date at every fifth step only, which saves four fifths of the time.
    """
    up, down = np.zeros(len(x)), np.zeros(len(x))
    out = np.full_like(x, -np.inf)
    median = mad = up
    for i in range(30, x.shape[1]):
        if i % 5 == 0:
            past = x[:, max(0, i - 200) : i]
            median = np.median(past, axis=1)
            mad = 1.4826 * np.median(np.abs(past - median[:, None]), axis=1)
        z = (x[:, i] - median) / np.maximum(mad, 1e-12)
        up, down = np.maximum(0.0, up + z - 1.0), np.maximum(0.0, down - z - 1.0)
        out[:, i] = np.maximum(up, down)
    return out


RULES: tuple[Rule, ...] = (
    Rule("6 sigma of 128", "OLMo-core SkipStepOptimizer", 6.0, _sigmas(128, 64)),
    Rule("7 sigma of 1,000", "OLMo 2 spike score", 7.0, _sigmas(1000, 128)),
    Rule("z of EWMA 0.97", "ZClip", 2.5, _zclip),
    Rule("MAD z of 21", "trainspotter 0.2.6 spikes", 6.0, _trainspotter_spikes),
    Rule("slope, over the minimum", "trainspotter 0.2.6 divergence", 1.5, _trainspotter_divergence),
    Rule("over the median of 25", "losslint 0.4.1 loss_spike", 10.0, _losslint_spike),
    Rule("last tenth over first", "losslint 0.4.1 divergence", 1.25, _losslint_divergence),
    Rule("times the mean of 50", "trainpulse 0.4.0", 5.0, _times_mean(50, 1)),
    Rule("CUSUM, slack 1, both sides", "trainscope 1.8.1 changepoint", 6.0, _other_cusum),
    Rule("times EWM of 9", "metaseq", 1.25, _metaseq),
    Rule("over the mean of 10", "Lightning SpikeDetection", 2.0, _lightning),
    Rule("twice the mean of 100, 5 times", "llm-foundry KillLossSpike", 2.0, _times_mean(100, 100, 5)),
    Rule("above a loss, 3 times", "axolotl loss watchdog", 5.0, lambda x: _in_a_row(x, 3)),
    Rule("times the largest of the first 100", "Megatron-LM", 10.0, _megatron),
    Rule("times the mean of 500 to 1,000 ago", "Mosaic OutlierDetector", 7.5, _times_mean(500, 500, ago=500)),
    Rule("times the best", "epochix 0.7.36", 10.0, _best),
)
