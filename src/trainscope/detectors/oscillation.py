"""oscillation: the loss swings up and down by a large part of its level, or its noise has grown.

What it finds
    A periodic swing of the training loss that carries at least `amplitude` of the level, in the later
    two thirds of the run, while the level itself does not fall (or 2.5 times that
    while it does). Where there is none: noise, as a standard deviation of at least `noise` of the level, that is far
    larger than at any time before, for 100 points or to the end of the log.
Algorithm
    The loss minus its running level, on an even grid, is whitened by its lag-1 autocorrelation and
    Fourier transformed; the strongest line is tested with Fisher's g statistic, and its amplitude before whitening
    compared with the level. Noise is the median change from point to point; in a window of 25 points it must be 2.5
    times as large as in any earlier one, of 50 points 1.9 times, of 100 points 1.6 times. The first 200 points are not
    judged, nor spikes and shifts, and a loss that rose must be as much noisier for its level too. In preference
    optimisation noise that the logged margins have as well is not told, unless fewer pairs are ranked right: both
    start at 0 and grow as the policy leaves its reference.
Parameters
    amplitude: smallest amplitude (half of top to bottom), as a fraction of the level.
    p_value: largest probability of such a line in white noise.
    noise: smallest noise that can have grown, as a fraction of the level.
False positives
    A batch size that was lowered on purpose. A cyclic learning rate with a very large range. Ordered batches swing
    too, but by less (a public run with grouped lengths: 6 %).
Misses
    Irregular bouncing that was there from the start: it cannot be told from noise of a small batch without a baseline.
    Noise that grows by little and little, noise that grew less than twofold, and noise no larger than the run had while
    its loss was high.
Reference
    R. A. Fisher, "Tests of significance in harmonic analysis", Proc. R. Soc. A 125, 1929.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.finding import Finding, Severity
from trainscope.core.noise import LEAST, MEDIAN_CHANGE
from trainscope.core.robust import block_medians, lag1
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, number, training_losses
from trainscope.detectors.engine.events import Limits
from trainscope.detectors.engine.excursions import excursions, judged
from trainscope.detectors.engine.noise import grown_noise
from trainscope.detectors.engine.preferences import margins_spread
from trainscope.detectors.engine.rates import after_planned_restart
from trainscope.detectors.engine.restarts import near_restart

FloatArray = NDArray[np.float64]

NEWEST = 26
"""Points that say whether noise that grew is still there at the end."""


@dataclass(frozen=True, slots=True)
class Params:
    """How large and how periodic a swing must be."""

    amplitude: float = 0.12
    """As a fraction of the level."""
    p_value: float = 1e-6
    """Fisher's g; one test a series."""
    noise: float = LEAST
    """Standard deviation, as a fraction of the level."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding for each training loss that oscillates."""
    losses = training_losses(run, adversarial=False)
    if isinstance(losses, Skipped):
        return losses
    findings = []
    for loss in losses:
        finite = loss.finite()
        if len(finite) >= 60:
            found = _oscillates(finite, params) or _noisier(run, judged(loss), params)
            if found is not None:
                findings.append(found)
    return findings if findings or any(len(s) >= 60 for s in losses) else Skipped("needs 60 points of train/loss")


def _swing_of(swing: FloatArray) -> float:
    """Return the standard deviation without the outermost 2 %: one burst is no oscillation."""
    return float(np.std(np.clip(swing, *np.percentile(swing, [1.0, 99.0]))))


def _oscillates(loss: Series, params: Params) -> Finding | None:
    begin = len(loss) // 3
    value = loss.value[begin:]
    if len(value) > 8192:
        value = value[: len(value) // (len(value) // 4096) * (len(value) // 4096)]
        value = value.reshape(-1, len(loss.value[begin:]) // 4096).mean(axis=1)
    n = len(value)
    halves = block_medians(value, n // 2)
    level = float(np.median(value))
    if level <= 0:
        return None
    falling = halves[0] - halves[-1] > 0.05 * level
    at = np.arange(n)
    swing = np.clip(value, *np.percentile(value, [0.5, 99.5]))
    swing = swing - np.polyval(np.polyfit(at, swing, 1), at)
    power = np.abs(np.fft.rfft(swing)[1:]) ** 2
    phi = lag1(swing)
    white = np.abs(np.fft.rfft(swing[1:] - phi * swing[:-1], n)[1:]) ** 2
    top = int(np.argmax(white))
    if top < 3 or power.sum() == 0 or white.sum() == 0:
        return None
    if min(_swing_of(half) for half in (swing[: n // 2], swing[n // 2 :])) < 0.5 * _swing_of(swing):
        return None
    near = power[max(0, top - 2) : top + 3].sum()
    g = white[top] / white.sum()
    p_value = min(1.0, len(power) * (1.0 - g) ** (len(power) - 1))
    amplitude = float(np.sqrt(4.0 * near) / n) / level
    if p_value > params.p_value or amplitude < params.amplitude * (2.5 if falling else 1.7 if top < 5 else 1.0):
        return None
    rest = "" if falling else " and does not fall any more"
    start, end = int(loss.step[begin]), int(loss.step[-1])
    period = (end - start) / (top + 1)
    return Finding(
        detector="oscillation",
        severity=Severity.WARNING,
        title="Loss oscillates",
        message=(
            f"{loss.name} swings by ±{amplitude:.0%} around {number(level)} with a period of about "
            f"{number(period)} steps{rest}."
        ),
        metric=loss.name,
        start_step=start,
        end_step=end,
        peak_step=start,
        evidence={"amplitude": amplitude, "period_steps": period, "level": level, "p_value": float(p_value)},
        fixes=(
            "Lower the learning rate (by 3 to 10 times) or decay it.",
            "Check the order of the data: an unshuffled loader swings with its own period.",
            "Raise the batch size or the gradient accumulation.",
        ),
    )


def _noisier(run: Run, loss: Series, params: Params) -> Finding | None:
    """Return a finding if the noise has grown, apart from spikes, shifts and divergences that others tell."""
    calm = np.ones(len(loss), dtype=bool)
    for event in excursions(loss, Limits()):
        if event.end - event.start >= 3:
            calm[event.start : event.end + 1] = False
    at = np.flatnonzero(calm)
    growth = grown_noise(loss.value[at], params.noise)
    if growth is None:
        return None
    # What was taken out as bursts may be the noise itself.
    newest = float(np.median(np.abs(np.diff(loss.value[-NEWEST:])))) / MEDIAN_CHANGE
    lasts = growth.end == len(at) - 1 or newest >= 1.5 * growth.before
    start, end = int(loss.step[at[growth.start]]), int(loss.step[-1 if lasts else at[growth.end]])
    times = growth.after / growth.before
    if near_restart(run, start) or after_planned_restart(run, start) or margins_spread(run, start, end, times):
        return None
    whole = loss.value[at[growth.start : growth.end + 1]]
    stays = "to the end" if lasts else f"until step {end}"
    share = growth.after / growth.level
    return Finding(
        detector="oscillation",
        severity=Severity.WARNING,
        title="Noise of the loss grew",
        message=(
            f"{loss.name} jumps about by ±{number(growth.after)} ({share:.1%} of its level) from step {start} on, "
            f"{stays}; at most ±{number(growth.before)} before."
        ),
        metric=loss.name,
        start_step=start,
        end_step=end,
        peak_step=int(loss.step[at[growth.start + int(np.argmax(whole))]]),
        evidence={"noise": growth.after, "noise_before": growth.before, "times": times, "level": growth.level},
        fixes=(
            f"Compare batch size, learning rate and data before and after step {start}.",
            "Lower the learning rate, or clip the gradient norm lower.",
            "If the batches became smaller or harder on purpose, this is expected: ignore this detector.",
        ),
    )


DETECTOR = Detector("oscillation", "Loss oscillates", ("train/loss",), Params(), detect)
