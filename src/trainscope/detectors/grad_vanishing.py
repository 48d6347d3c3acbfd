"""grad_vanishing: the gradient norm falls to nothing and stays there.

What it finds
    A gradient norm that drops to less than `ratio` of its earlier level, or to exactly 0, for at least 10
    points up to the end or for a fifth of the run.
Algorithm
    Block medians of the norm against the median of everything before.
Parameters
    ratio: largest ratio to the earlier level.
False positives
    A task that is solved exactly (loss 0).
Misses
    A layer that gets no gradient while others do: the global norm does not show it; use the recorder.
Reference
    S. Hochreiter, "Untersuchungen zu dynamischen neuronalen Netzen", 1991, for the phenomenon.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import Kind
from trainscope.core.robust import stretches
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, by_kind, number


@dataclass(frozen=True, slots=True)
class Params:
    """How small is nothing."""

    ratio: float = 1e-4
    """To the median before; training itself rarely lowers the norm by more than 100 times."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding for each gradient norm that vanished."""
    main = run.get("train/grad_norm")
    norms = [main] if main is not None else by_kind(run, Kind.GRAD_NORM)
    if not norms:
        return Skipped("needs train/grad_norm")
    found = [_vanished(norm.finite(), params) for norm in norms if len(norm.finite()) >= 30]
    if not found:
        return Skipped("needs 30 points of train/grad_norm")
    return [f for f in found if f is not None]


def _vanished(norm: Series, params: Params) -> Finding | None:
    n = len(norm)
    usual = float(np.median(norm.value[: max(10, n // 10)]))
    if usual <= 0:
        return None
    tiny = norm.value < params.ratio * usual
    edges = stretches(tiny)
    spans = [(a, b) for a, b in edges if b - a >= 10 and (b == n or b - a >= n // 5)]
    if not spans:
        return None
    begin, end = spans[0]
    before = float(np.median(norm.value[:begin])) if begin else usual
    level = float(np.median(norm.value[begin:end]))
    start, last = int(norm.step[begin]), int(norm.step[end - 1])
    return Finding(
        detector="grad_vanishing",
        severity=Severity.ERROR,
        title="Gradient vanishes",
        message=f"{norm.name} fell from {number(before)} to {number(level)} at step {start} and stays there to {last}.",
        metric=norm.name,
        start_step=start,
        end_step=last,
        peak_step=start,
        evidence={"before": before, "level": level},
        fixes=(
            "Check for dead units (ReLU after a too large step), a detached graph, or a loss that became constant.",
            "Under fp16, raise the loss scale: gradients underflow to 0.",
            f"Resume from before step {start}.",
        ),
    )


DETECTOR = Detector("grad_vanishing", "Gradient vanishes", ("train/grad_norm",), Params(), detect)
