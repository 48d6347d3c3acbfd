"""loss_floor: the training loss is near 0 far too soon: the answer is probably in the input.

What it finds
    A loss that starts like a cross-entropy (0.3 to 20) and is under 1 % of that, and under 0.02, within
    the first tenth of the run, and stays there.
Algorithm
    Direct comparison of block medians. A heuristic, not a test: nothing but the task itself says how low
    a loss may be.
Parameters
    ratio: largest share of the first loss that counts as the floor.
    floor: largest loss that counts as the floor, in its own unit.
    within: share of the run in which it must be reached.
False positives
    A task that is easy (a regression of a simple function scaled to start near 1).
Misses
    A partial leak, which leaves a loss that is low but not near 0; see the comparison with a baseline.
Reference
    huggingface/transformers#31673 (labels leaked by a mask: the loss fell to 0 at once).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.robust import block_medians
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, number, training_losses


@dataclass(frozen=True, slots=True)
class Params:
    """What is too low, too soon."""

    ratio: float = 0.01
    """Of the first loss."""
    floor: float = 0.02
    """In the unit of the loss; nats for a cross-entropy."""
    within: float = 0.1
    """Of the run."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding for each training loss that fell to the floor at once."""
    losses = training_losses(run, adversarial=False)
    if isinstance(losses, Skipped):
        return losses
    findings = []
    for loss in losses:
        finite = loss.finite()
        if len(finite) >= 30:
            found = _floor(finite, params)
            if found is not None:
                findings.append(found)
    return findings if any(len(s) >= 30 for s in losses) else Skipped("needs 30 points of train/loss")


def _floor(loss: Series, params: Params) -> Finding | None:
    first = float(np.max(loss.value[:3]))
    if not 0.3 <= first <= 20.0:
        return None
    size = max(3, len(loss) // 100)
    blocks = block_medians(loss.value, size)
    limit = min(params.floor, params.ratio * first)
    low = (blocks <= limit) & (blocks >= 0.0)
    if not low.any() or int(np.argmax(low)) > params.within * len(blocks) or low[int(np.argmax(low)) :].mean() < 0.9:
        return None
    at = int(np.argmax(loss.value <= limit))
    step, last = int(loss.step[at]), int(loss.step[-1])
    reached, level = float(loss.value[at]), float(np.median(loss.value[at:]))
    if float(np.median(loss.value)) == 0.0:
        return None
    return Finding(
        detector="loss_floor",
        severity=Severity.WARNING,
        title="Loss near 0 too soon",
        message=(
            f"{loss.name} fell from {number(first)} to {number(reached)} by step {step} of {last} and stays at "
            f"{number(level)}: the labels may be visible in the input."
        ),
        metric=loss.name,
        start_step=int(loss.step[0]),
        end_step=step,
        peak_step=step,
        evidence={"first": first, "value": reached, "limit": limit, "level": level, "reached_at": step},
        fixes=(
            "Check the causal mask, the label shift, and that no feature contains the target.",
            "Check that the loss is averaged over the tokens you mean, and that labels are not constant.",
            "Compare with the loss on data from another source.",
        ),
    )


DETECTOR = Detector("loss_floor", "Loss near 0 too soon", ("train/loss",), Params(), detect)
