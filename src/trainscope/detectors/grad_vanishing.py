"""grad_vanishing: the gradient norm falls to nothing and stays there.

What it finds
    (a) A gradient norm that drops to less than `ratio` of its earlier level, or to exactly 0, for at least 10
    points up to the end or for a fifth of the run. (b) In a recorded run, a layer whose part of the gradient falls to
    less than `part` of what it was, while the others still learn.
Algorithm
    Block medians of the norm against the median of everything before. Of layers: the norm over the global norm,
    medians of 20 points; the last one against the highest of the first half. Experts of a mixture are left out: see
    `router`.
Parameters
    ratio: largest ratio to the earlier level.
    part: largest ratio of a layer's part to what it was.
False positives
    A task that is solved exactly (loss 0).
Misses
    A layer that never got a gradient, or gets none at all (no number, not 0): see `parameters_not_training`.
Reference
    Measured: in 252 healthy recordings no layer's part falls by more than 4.7 times, and with weight decay 10 by 182 to
    1,620 times in 6 of 6.
    S. Hochreiter, "Untersuchungen zu dynamischen neuronalen Netzen", 1991, for the phenomenon.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import Kind
from trainscope.core.robust import stretches
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, by_kind, number

GRADIENT, WINDOW = "grad_l2_norm", 20
LEAST = 1e-4
"""Part of the gradient below which a layer's is rounding, as of a bias that cancels out."""


@dataclass(frozen=True, slots=True)
class Params:
    """How small is nothing."""

    ratio: float = 1e-4
    """To the median before; training itself rarely lowers the norm by more than 100 times."""
    part: float = 0.01
    """A hundredth; twenty times what health takes away."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding for each gradient norm that vanished, or else one for the layers that did."""
    main = run.get("train/grad_norm")
    norms = [main] if main is not None else by_kind(run, Kind.GRAD_NORM)
    if not norms:
        return Skipped("needs train/grad_norm")
    found = [_vanished(norm.finite(), params) for norm in norms if len(norm.finite()) >= 30]
    if not found:
        return Skipped("needs 30 points of train/grad_norm")
    return [f for f in found if f is not None] or (_layers(run, main.finite(), params) if main is not None else [])


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


def _layers(run: Run, norm: Series, params: Params) -> list[Finding]:
    """Return one finding that names the layer whose gradient fell most."""
    if run.layers is None or GRADIENT not in run.layers.metrics():
        return []
    fallen = []
    for layer in run.layers.layers():
        part = None if ".experts." in layer else _part(run.layers.series(layer, GRADIENT), norm)
        if part is None:
            continue
        medians = np.median(sliding_window_view(part.value, WINDOW), axis=1)
        before, last = float(medians[: len(medians) // 2].max()), float(medians[-1])
        if before >= LEAST and last < params.part * before:
            low = np.flatnonzero(medians >= params.part * before)[-1] + WINDOW // 2
            fallen.append((last / before, layer, int(part.step[low]), before, last))
    if not fallen:
        return []
    ratio, layer, start, before, last = min(fallen)
    more = f" So did that of {len(fallen) - 1} more." if len(fallen) > 1 else ""
    return [
        Finding(
            detector="grad_vanishing",
            severity=Severity.WARNING,
            title="Gradient of a layer vanishes",
            message=f"The part of {layer} in the gradient norm fell from {number(before)} to {number(last)} by step "
            f"{start} and stays there: it hardly learns any more.{more}",
            metric=GRADIENT,
            layer=layer,
            start_step=start,
            end_step=int(norm.step[-1]),
            peak_step=start,
            evidence={"before": before, "level": last, "ratio": ratio, "layers": len(fallen)},
            fixes=(
                "Check for units that are dead or saturated behind this layer, and for weights that went to 0.",
                "Give it a residual connection or a norm; lower the learning rate or the weight decay.",
            ),
        )
    ]


def _part(layer: Series, norm: Series) -> Series | None:
    """Return a layer's norm over the global one, None where there are too few points of both."""
    step, a, b = np.intersect1d(layer.step, norm.step, assume_unique=True, return_indices=True)
    with np.errstate(all="ignore"):
        part = layer.value[a] / norm.value[b]
    good = np.isfinite(part)
    return Series(GRADIENT, step[good], part[good]) if good.sum() >= 3 * WINDOW else None


DETECTOR = Detector("grad_vanishing", "Gradient vanishes", ("train/grad_norm",), Params(), detect)
