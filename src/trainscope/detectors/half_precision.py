"""half_precision: numbers of 16 bits run out of range, at the top or at the bottom.

What it finds
    (a) *Headroom*: an activation that is within four times of the largest number of fp16, 65,504. From there on an
    ordinary batch may overflow, and a loss scale cannot help: it scales gradients, not activations.
    (b) *Underflow*: gradients that have come so near to the smallest number of fp16 that their largest entries are
    small multiples of it. Everything smaller was rounded to it or to 0, and the training goes on without it; neither
    loss nor gradient norm shows it.
Algorithm
    From the Python recorder. Headroom: the largest activation of each module, where fp16 is known to be used (a
    GradScaler that is on, or autocast to fp16). Underflow: the largest entry of each parameter's gradient, as it was
    recorded, over the finest power of two that it is a whole multiple of: of numbers with 24 bits one in 260,000 is
    at most 64 of its kind, of halves in their usual range one in 32. A layer counts where 9 of 10 steps are; the
    finding needs `layers` of them.
Parameters
    headroom: smallest ratio of 65,504 to an activation.
    levels: multiples of the finest step up to which the largest entry is coarse.
    layers: share of the layers with a gradient that must be coarse.
False positives
    Headroom: bf16 with a GradScaler, which needs none. Underflow: losses whose gradients are small whole numbers in all
    layers.
Misses
    Activations of modules that were not recorded. Gradients that several micro-batches or ranks were added up in finer
    than 16 bits; a scale that is no power of two; models of which most gradients are taken in 32 bits. The gradient of
    an activation that overflows is refused by the GradScaler: see `loss_scale`.
Reference
    P. Micikevicius et al., "Mixed Precision Training", arXiv:1710.03740. Measured: 0 of 60 healthy recordings and 0 of
    86 of other faults have one coarse layer; gradients rounded to halves at a loss scale of 1/65,536 have all of them,
    in 6 of 6, and end 0.05 to 0.07 nat higher. Under autocast on a CPU: loss scales of 1/65,536 and 1/8,192 found in 2
    of 2, an activation of 18,530 found, one of 5,584 and a healthy training not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import FloatArray, LayerTable, Run
from trainscope.detectors.base import Detector, Lack, Skipped, number

LARGEST = 65_504.0
"""Of fp16."""
ACTIVATION, GRADIENT, SCALE = "act_max_abs", "grad_max_abs", "amp/grad_scale"
STEPS = 20
"""Fewest steps of a gradient."""
FEWEST = 3
"""Layers: one or two may have gradients of whole numbers."""
MOSTLY = 0.9
"""Share of a layer's steps."""
BITS = 24
"""Of the significand of single precision."""


@dataclass(frozen=True, slots=True)
class Params:
    """Distances from the ends of the range."""

    headroom: float = 4.0
    """Activations grow by less than that between two looks."""
    levels: int = 64
    """An entry that is a hundredth of the largest is then rounded to nothing."""
    layers: float = 0.3
    """Autocast takes the gradients of norms and embeddings, half of a transformer's tensors, in 32 bits."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding for the activation nearest to the top, and one for gradients at the bottom."""
    table = run.layers
    if table is None or not {ACTIVATION, GRADIENT} & set(table.metrics()):
        return Skipped("needs gradients or activations recorded by the Python recorder", kind=Lack.RECORDING)
    halves = uses_halves(run)
    gradients = {name: value for name in table.layers() if len(value := _gradient(table, name, halves)) >= STEPS}
    if not gradients and not halves:
        return Skipped(f"needs {STEPS} steps of gradients recorded by the Python recorder")
    return [*(_headroom(table, params) if halves else []), *_underflow(run, gradients, params)]


def uses_halves(run: Run) -> bool:
    """Tell whether forwards are known to be computed in fp16."""
    autocast = facts.names(run, "smoke.autocast")
    return run.get(SCALE) is not None or any(kind.removeprefix("torch.") == "float16" for kind in autocast)


def _gradient(table: LayerTable, layer: str, halves: bool) -> FloatArray:
    """Return the largest entries of a layer's gradient; zeros only where halves may have made them."""
    value = table.series(layer, GRADIENT).finite().value
    return np.asarray(value[value >= 0] if halves and ".experts." not in layer else value[value > 0])


def _headroom(table: LayerTable, params: Params) -> list[Finding]:
    near: list[tuple[float, str, int, int, int]] = []
    for layer in table.layers():
        series = table.series(layer, ACTIVATION).finite()
        over = np.flatnonzero(series.value * params.headroom > LARGEST)
        if len(over):
            peak = int(np.argmax(series.value))
            start, end, at = (int(series.step[i]) for i in (over[0], over[-1], peak))
            near.append((float(series.value[peak]), layer, start, end, at))
    if not near:
        return []
    value, layer, start, end, at = max(near, key=lambda one: (one[0], one[1]))
    more = f" So are activations of {len(near) - 1} more." if len(near) > 1 else ""
    return [
        Finding(
            detector="half_precision",
            severity=Severity.WARNING,
            title="Activations near the end of fp16",
            message=f"An activation of {layer} is {number(value)} at step {at}; fp16 ends at 65,504, and a loss "
            f"scale does not help there.{more}",
            metric=ACTIVATION,
            layer=layer,
            start_step=start,
            end_step=end,
            peak_step=at,
            evidence={"value": value, "headroom": LARGEST / value, "layers": len(near)},
            fixes=(
                "Train in bf16, or keep this layer in single precision.",
                "Lower the learning rate; normalise before it.",
            ),
        )
    ]


def finest(value: FloatArray) -> FloatArray:
    """Return the largest power of two that each number is a whole multiple of, 0 of 0."""
    fraction, exponent = np.frexp(value)
    significand = np.rint(fraction * 2.0**BITS).astype(np.int64)
    return np.asarray(np.ldexp((significand & -significand).astype(np.float64), exponent - BITS))


def _underflow(run: Run, gradients: dict[str, FloatArray], params: Params) -> list[Finding]:
    coarse = {}
    for name, value in gradients.items():
        few = value <= params.levels * finest(value)
        if float(few.mean()) >= MOSTLY:
            grain = finest(value[few & (value > 0)])
            coarse[name] = float(np.median(value)) / float(grain.min()) if len(grain) else 0.0
    if len(coarse) < max(FEWEST, params.layers * len(gradients)):
        return []
    first, last = run.first_step or 0, run.last_step or 0
    levels = float(np.median(list(coarse.values())))
    said = (
        f"at most a small whole multiple, mostly {number(levels)} times, of one power of two" if levels else "exactly 0"
    )
    return [
        Finding(
            detector="half_precision",
            severity=Severity.WARNING,
            title="Gradients underflow",
            message=f"In {len(coarse)} of {len(gradients)} layers the gradient is {said} at nearly every step: what is "
            "smaller was rounded to 0.",
            metric=GRADIENT,
            start_step=first,
            end_step=last,
            evidence={"layers": len(coarse), "levels": levels},
            fixes=(
                "Raise the loss scale (a GradScaler finds the right one), or train in bf16.",
                "Check that the loss is not divided by more than the number of micro-batches.",
            ),
        )
    ]


DETECTOR = Detector(
    "half_precision",
    "Half precision runs out of range",
    ("gradients and activations of a recorded run",),
    Params(),
    detect,
)
