"""unigram_floor: the model has learned only how often each label occurs.

What it finds
    A cross entropy that still stands at the entropy of the labels late in the run: labels that do not belong to
    their inputs, inputs that never arrive, dead units.
Algorithm
    Direct comparison, from a smoke run: the median cross entropy of the last ``window`` steps against the entropy
    of the labels seen so far, not before step ``start``.
Parameters
    start: first step at which the model should know more. Measured: healthy small models pass the floor by 60.
    window: steps of the median.
    near: how far under the entropy still counts, in nat.
False positives
    Very short or very slow runs, label smoothing, distillation.
Misses
    Models that learn a little.
Reference
    Measured on shuffled labels and dead units: 3.28 against an entropy of 3.25, no healthy run among 22.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Detector, Skipped, needs_smoke, number

LOSS, FLOOR = "smoke/cross_entropy", "smoke/label_entropy"


@dataclass(frozen=True, slots=True)
class Params:
    """When and how near."""

    start: int = 120
    """Optimizer steps."""
    window: int = 20
    """Steps."""
    near: float = 0.05
    """nat."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding where the loss stands at the entropy of the labels."""
    skip = needs_smoke(run)
    if skip is not None:
        return skip
    loss, floor = run.get(LOSS), run.get(FLOOR)
    if loss is None or floor is None:
        return Skipped("needs labels given to a cross entropy")
    if len(loss) < params.start:
        return Skipped(f"needs {params.start} steps, has {len(loss)}")
    smoothing = facts.number(run, "smoke.label_smoothing")
    entropy, level = float(floor.value[-1]), float(np.median(loss.value[-params.window :]))
    if smoothing or entropy < 2 * params.near or not level >= entropy - params.near:
        return []
    return [
        Finding(
            detector="unigram_floor",
            severity=Severity.ERROR,
            title="Learned nothing but label frequencies",
            message=(
                f"After {len(loss)} steps the cross entropy is {number(level)}; knowing only how often each label "
                f"occurs gives {number(entropy)}."
            ),
            metric=LOSS,
            start_step=int(loss.step[-params.window]),
            end_step=int(loss.step[-1]),
            evidence={"level": level, "label_entropy": entropy, "steps": len(loss)},
            fixes=(
                "Check that labels belong to their inputs: shuffling, sorting, shifting, masking.",
                "Check that the inputs reach the output: normalisation, dead units, a learning rate far too high.",
            ),
        )
    ]


DETECTOR = Detector("unigram_floor", "Learned nothing but label frequencies", (LOSS, FLOOR), Params(), detect)
