"""zero_loss: the training loss is exactly 0 where it should not be.

What it finds
    Two or more points in a row at which the training loss is exactly 0 after it was not.
Algorithm
    Direct comparison. Runs that are 0 from the first point on, reinforcement learning, and the losses of a
    game of two networks are left out: there a player that has won is at 0, and gan_imbalance says so.
Parameters
    points: how many zero points in a row count.
False positives
    A hinge or margin loss that is met by every sample of the batch.
Misses
    A loss that is rounded to 0 by the logger from a value that was not.
Reference
    hiyouga/LLaMA-Factory#2916 and huggingface/transformers: under fp16 a NaN loss is logged as 0.0.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainscope.core.finding import Finding, Severity
from trainscope.core.robust import stretches
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, training_losses


@dataclass(frozen=True, slots=True)
class Params:
    """How long the loss must stay 0."""

    points: int = 2
    """Logged points in a row; one 0 may be a batch without labels."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding for each training loss that collapsed to 0."""
    losses = training_losses(run, adversarial=False)
    if isinstance(losses, Skipped):
        return losses
    findings = []
    for loss in losses:
        zero = loss.value == 0.0
        if zero.all() or zero[0]:
            continue
        edges = stretches(zero)
        spans = [(a, b - 1) for a, b in edges if b - a >= params.points]
        if spans:
            findings.append(_finding(loss, spans, sum(b - a + 1 for a, b in spans)))
    return findings


def _finding(loss: Series, spans: list[tuple[int, int]], points: int) -> Finding:
    start, end = int(loss.step[spans[0][0]]), int(loss.step[spans[-1][1]])
    return Finding(
        detector="zero_loss",
        severity=Severity.ERROR,
        title="Loss is exactly 0",
        message=f"{loss.name} is exactly 0 at {points} points from step {start} to {end}; nothing is learned there.",
        metric=loss.name,
        start_step=start,
        end_step=end,
        peak_step=start,
        evidence={"points": points, "before": float(loss.value[spans[0][0] - 1])},
        fixes=(
            "Look for NaN in the gradients: trainers log a NaN loss as 0 (Hugging Face logging_nan_inf_filter).",
            "Use bf16 or fp32, or another attention implementation.",
            "Check that the labels of these batches are not all masked (-100).",
        ),
    )


DETECTOR = Detector("zero_loss", "Loss is exactly 0", ("train/loss",), Params(), detect)
