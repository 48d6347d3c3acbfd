"""loss_scale: mixed precision takes back too many steps, or its loss scale falls without end.

What it finds
    (a) A GradScaler that refuses more than one step in twenty, long after it has found its scale: these steps train
    nothing. (b) A loss scale that is halved again and again and never grows back: gradients overflow whatever the
    scale is.
Algorithm
    From a recorded run with a GradScaler, after the first steps: the share of refused steps in every window, where the
    scale does not grow over the window; falls of the scale in a row, without a rise between them.
Parameters
    skipped: largest share of refused steps.
    window: steps in which they are counted.
    falls: falls in a row that are too many.
    start: first steps, in which a scale comes down from where it was set.
False positives
    A scaler that is told to try larger scales every few steps: it refuses as many as it tries.
Misses
    A loss scale of the script's own making, and scalers of other libraries; a run that ends before `start` and
    `window` are over.
Reference
    P. Micikevicius et al., "Mixed Precision Training", arXiv:1710.03740. PyTorch's GradScaler begins at 65,536, halves
    at an overflow and doubles after 2,000 steps without one: healthy runs refuse one step in 2,000, and a few at first.
    Measured under autocast on a CPU: a loss that overflows at any scale and one that does at every eighth step, 2 of 2;
    a healthy training of 120 steps not. The window of refused steps is tested on made recordings only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Lack, Skipped, number

SCALE, REFUSED = "amp/grad_scale", "amp/step_skipped"


@dataclass(frozen=True, slots=True)
class Params:
    """How much a scaler may refuse."""

    skipped: float = 0.05
    """One step in 20; with PyTorch's defaults one in 2,000 is usual."""
    window: int = 100
    """Steps."""
    falls: int = 5
    """Each halves the scale: from a scale that fitted to a thirty-second of it."""
    start: int = 100
    """Step; from 65,536 down to 1 it is 16 falls."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding: of a scale that falls without end, or else of refused steps."""
    scale = run.get(SCALE)
    if scale is None:
        return Skipped("needs the GradScaler of a recorded run", kind=Lack.RECORDING)
    late = (scale.step >= params.start) & np.isfinite(scale.value)
    scale = Series(SCALE, scale.step[late], scale.value[late])
    if len(scale) < 2:
        return Skipped(f"needs steps after step {params.start}")
    return _falling(scale, params) or _refused(run, scale, params)


def _falling(scale: Series, params: Params) -> list[Finding]:
    moves = np.flatnonzero(np.diff(scale.value) != 0)
    down = np.diff(scale.value)[moves] < 0
    best, count, begin = (0, 0), 0, 0
    for i, falls in enumerate(down):
        begin = i if falls and not count else begin
        count = count + 1 if falls else 0
        best = max(best, (count, -begin))
    most, begin = best[0], -best[1]
    if most < params.falls:
        return []
    first, last = int(moves[begin]), int(moves[begin + most - 1]) + 1
    start, end = int(scale.step[first + 1]), int(scale.step[last])
    before, after = float(scale.value[first]), float(scale.value[last])
    return [
        Finding(
            detector="loss_scale",
            severity=Severity.ERROR if after < 1 else Severity.WARNING,
            title="Loss scale falls without end",
            message=f"{SCALE} fell {most} times in a row, from {number(before)} to {number(after)} at steps {start} to "
            f"{end}: gradients overflow at every scale.",
            metric=SCALE,
            start_step=start,
            end_step=end,
            peak_step=end,
            evidence={"falls": most, "before": before, "after": after},
            fixes=(
                "Train in bf16.",
                "Find what is not finite at any scale: a division by 0, a log of 0, an activation beyond 65,504.",
            ),
        )
    ]


def _refused(run: Run, scale: Series, params: Params) -> list[Finding]:
    refused = run.get(REFUSED)
    if refused is None:
        return []
    step, a, b = np.intersect1d(scale.step, refused.step, assume_unique=True, return_indices=True)
    if len(step) < params.window:
        return []
    value, level = refused.value[b] > 0, scale.value[a]
    share = sliding_window_view(value, params.window).mean(axis=1)
    # While the scale climbs, refusals are how it finds its place.
    bad = np.flatnonzero((share > params.skipped) & (level[params.window - 1 :] <= level[: len(share)]))
    if not len(bad):
        return []
    first, last = int(bad[0]), int(bad[-1]) + params.window - 1
    first += int(np.argmax(value[first:]))
    many = int(value[first : last + 1].sum())
    return [
        Finding(
            detector="loss_scale",
            severity=Severity.WARNING,
            title="Steps refused by the loss scale",
            message=f"{many} of {last - first + 1} steps from {int(step[first])} to {int(step[last])} were refused "
            f"because gradients overflowed, at a loss scale of {number(float(level[first]))} and less.",
            metric=REFUSED,
            start_step=int(step[first]),
            end_step=int(step[last]),
            evidence={"refused": many, "share": float(share.max())},
            fixes=(
                "Train in bf16.",
                "Look at the batches of those steps, and at what makes single gradients so large.",
            ),
        )
    ]


DETECTOR = Detector("loss_scale", "Loss scale refuses steps", (SCALE, REFUSED), Params(), detect)
