"""dead_units: most units behind an activation function never answer.

What it finds
    A layer in which more than half of the units give 0 for the whole batch, step after step: they get no gradient
    and never come back.
Algorithm
    From the recorder: the median share of dead units over `window` sampled steps, against `share`, and against the
    layer's own first share plus `grown`: a layer that was born sparse is not dying.
Parameters
    share: largest share that passes. Measured: .73 after a learning rate that was far too high, .2 in healthy models.
    grown: how much the share must have grown since the first step.
    window: sampled steps of the median.
False positives
    Mixtures and other layers that are sparse by design and become so while they learn.
Misses
    Functions that are never exactly 0 (GELU, SiLU, Tanh), whose units saturate instead.
Reference
    L. Lu et al., "Dying ReLU and Initialization: Theory and Numerical Examples", arXiv:1903.06733.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Detector, Lack, Skipped, number

DEAD = "act_dead_fraction"


@dataclass(frozen=True, slots=True)
class Params:
    """Shares of a layer's units."""

    share: float = 0.5
    """Half a layer is a smaller model than was paid for."""
    grown: float = 0.2
    """Beyond what initialisation leaves dead."""
    window: int = 20
    """Sampled steps: a unit may sleep through a batch."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding that names the first layer to die."""
    if run.layers is None or DEAD not in run.layers.metrics():
        return Skipped("needs activations recorded by the Python recorder", kind=Lack.RECORDING)
    found = []
    judged = False
    for name in run.layers.layers():
        series = run.layers.series(name, DEAD).finite()
        if len(series) < params.window:
            continue
        judged = True
        medians = np.median(sliding_window_view(series.value, params.window), axis=1)
        dying = (medians > params.share) & (medians > series.value[0] + params.grown)
        if dying.any():
            begin = int(np.argmax(dying))
            first = begin + int(np.argmax(series.value[begin : begin + params.window] > params.share))
            found.append((int(series.step[first]), name, float(medians.max()), series))
    if not judged:
        return Skipped(f"needs {params.window} sampled steps behind a ReLU or its kin, by the Python recorder")
    if not found:
        return []
    start, name, most, series = min(found, key=lambda f: (f[0], -f[2]))
    worst = max(f[2] for f in found)
    names = ", ".join(f[1] for f in found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
    return [
        Finding(
            detector="dead_units",
            severity=Severity.ERROR,
            title="Dead units",
            message=f"In {'layer' if len(found) == 1 else 'layers'} {names}, up to {number(100 * worst)} % of the "
            f"units are 0 for whole batches from step {start} on: they get no gradient.",
            metric=DEAD,
            layer=name,
            start_step=start,
            end_step=int(series.step[-1]),
            peak_step=int(series.step[int(np.argmax(series.value))]),
            evidence={"share": most, "first": float(series.value[0]), "layers": len(found)},
            fixes=(
                "Lower the learning rate, or warm it up: one large update can kill a layer for good.",
                "Use an activation function that is never flat (GELU, SiLU, LeakyReLU); check the initialisation.",
            ),
        )
    ]


DETECTOR = Detector("dead_units", "Dead units", ("activations of a recorded run",), Params(), detect)
