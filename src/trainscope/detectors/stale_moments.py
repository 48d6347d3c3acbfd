"""stale_moments: the gradient is far above what Adam's second moment believes, so the coming update is too large.

What it finds
    A step at which RMS_t of the first layer, the root mean square of the gradient over the root of the second moment,
    leaves everything that it was before. In large models the loss spikes one to eight steps later.
Algorithm
    From the Python recorder, which takes RMS_t every fifth step or less often: each value of the first layer that has
    one (the embedding, in a language model) after step `start`, against `most` and against `beyond` times all of its
    values before. Other layers are not judged: in small ones RMS_t reaches 4 in health.
Parameters
    most: largest RMS_t that passes.
    beyond: how many times as high as ever before it must be.
    start: step from which on it is judged.
False positives
    A switch of the data, to which the second moment adapts by itself.
Misses
    Spikes between two samples; a second moment that is stale in a later layer only. Models whose first layer has few
    numbers.
Reference
    M. Wortsman et al., "Stable and low-precision training for large-scale vision-language models", arXiv:2304.13013,
    section 3.4. Measured with beta2 0.99 at 68,000 parameters: 0 of 60 healthy recordings, three random batches in 6
    of 6 and three repetitive ones in 5 of 6 (2.3 to 3.1 where at most 2.0 was usual); no spike of its own appears at
    this scale, so how often one follows is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Lack, Skipped, number

RMS = "rms_t"
HISTORY = 10
"""Values that must have been there before."""


@dataclass(frozen=True, slots=True)
class Params:
    """RMS_t, 1 while the second moment keeps up."""

    most: float = 2.3
    """Healthy first layers reach 2.4, and only in their first steps."""
    beyond: float = 1.25
    """Times the highest before."""
    start: int = 60
    """Step: while the second moment fills, RMS_t says little."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return the first step at which the second moment was stale; the message counts the others."""
    series = _first_layer(run)
    if series is None:
        return Skipped("needs Adam's second moment recorded by the Python recorder", kind=Lack.RECORDING)
    layer, rms = series
    late = rms.step >= params.start
    step, value = rms.step[late], rms.value[late]
    if len(value) <= HISTORY:
        return Skipped(f"needs {HISTORY + 1} sampled steps of RMS_t after step {params.start}")
    before = np.maximum.accumulate(value)[:-1]
    odd = 1 + np.flatnonzero((value[1:] >= params.most) & (value[1:] >= params.beyond * before))
    odd = odd[odd >= HISTORY]
    if not len(odd):
        return []
    at, highest = int(odd[0]), float(before[odd[0] - 1])
    top = int(odd[int(np.argmax(value[odd]))])
    more = f" It happened {len(odd)} times." if len(odd) > 1 else ""
    return [
        Finding(
            detector="stale_moments",
            severity=Severity.WARNING,
            title="Adam's second moment is stale",
            message=f"The gradient of {layer} is {number(float(value[at]))} times what Adam's second moment says at "
            f"step {int(step[at])} (RMS_t; never above {number(highest)} before), and its update is as much too large."
            f"{more}",
            metric=RMS,
            layer=layer,
            start_step=int(step[at]),
            end_step=int(step[odd[-1]]),
            peak_step=int(step[top]),
            evidence={"value": float(value[top]), "before": highest},
            fixes=(
                "Lower Adam's beta2 (0.95), or clip the update (StableAdamW).",
                f"Look at the batch of step {int(step[at])}.",
            ),
        )
    ]


def _first_layer(run: Run) -> tuple[str, Series] | None:
    """Return the first layer that has RMS_t, and its values."""
    if run.layers is None or RMS not in run.layers.metrics():
        return None
    for layer in run.layers.layers():
        series = run.layers.series(layer, RMS).finite()
        if len(series):
            return layer, series
    return None


DETECTOR = Detector(
    "stale_moments", "Adam's second moment is stale", ("optimizer state of a recorded run",), Params(), detect
)
