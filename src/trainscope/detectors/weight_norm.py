"""weight_norm: the norm of the weights collapses or runs away.

What it finds
    Weights that shrink by half within 100 steps (weight decay far too strong), and weights that double within 100
    steps later in the run (they run away).
Algorithm
    From a recorded run: the ratio of the global weight norm to what it was `window` steps before, against `shrunk`
    and `grown`. Where one step made more than half of the change, that is where it began.
Parameters
    shrunk: smallest ratio that passes.
    grown: largest ratio that passes.
    window: steps between the two.
    start: share of the run before which growth is normal: a model that learns leaves its small first weights.
False positives
    A model that is merged or re-initialised on purpose while it is recorded.
Misses
    Slow drift: a decay that takes thousands of steps.
Reference
    Measured: weight decay 10 takes the norm from 16 to 4 in 300 steps; even at ten times the best learning rate the
    norm doubles only within the first 90 steps and gains a tenth afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Lack, Skipped, number

NORM = "model/weight_norm"
LEFT = 0.02
"""Share of the whole change, in logarithms, after which it has begun."""


@dataclass(frozen=True, slots=True)
class Params:
    """Ratios of the norm to itself before."""

    shrunk: float = 0.5
    """Normal decay of 0.1 at a learning rate of 3e-4 takes 0.3 % in 100 steps."""
    grown: float = 2.0
    """After warm-up, healthy runs gain a tenth."""
    window: int = 100
    """Steps."""
    start: float = 0.3
    """Share of the run, up to the earlier of the two steps."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding where the norm first halved or doubled."""
    recorded = run.get(NORM)
    norm = None if recorded is None else recorded.finite()
    if norm is None or len(norm) < 20:
        return Skipped(f"needs 20 points of {NORM}, which a recorded run has", kind=Lack.RECORDING)
    before = np.interp(norm.step - params.window, norm.step, norm.value)
    with np.errstate(all="ignore"):
        ratio = norm.value / before
    late = norm.step - params.window >= norm.step[0] + params.start * (norm.step[-1] - norm.step[0])
    found = []
    for odd, word in ((ratio < params.shrunk, "shrank"), ((ratio > params.grown) & late, "grew")):
        if odd.any():
            found.append(_finding(norm, int(np.argmax(odd)), word, params))
    return found


def _finding(norm: Series, at: int, word: str, params: Params) -> Finding:
    step, last = int(norm.step[at]), float(norm.value[-1])
    shrank = word == "shrank"
    first = int(np.searchsorted(norm.step, step - params.window))
    levels = np.log(np.maximum(norm.value[first : at + 1], 1e-300))
    # The window only compares: what began within it began where the norm left its level.
    left = np.abs(levels - levels[0]) > LEFT * abs(levels[-1] - levels[0])
    first += max(int(np.argmax(left)) - 1, 0)
    moves = np.abs(np.diff(np.log(np.maximum(norm.value[first : at + 1], 1e-300))))
    if moves.max() > 0.5 * moves.sum():  # at once: then that is the step
        first += int(np.argmax(moves))
        at, start = first + 1, int(norm.step[first + 1])
        when = f"at step {start}"
    else:
        start = int(norm.step[first])
        when = f"from step {start} to {step}"
    before, value = float(norm.value[first]), float(norm.value[at])
    return Finding(
        detector="weight_norm",
        severity=Severity.ERROR,
        title="Weights collapse" if shrank else "Weights run away",
        message=f"{norm.name} {word} from {number(before)} to {number(value)} {when}; it is {number(last)} at the end.",
        metric=norm.name,
        start_step=start,
        end_step=int(norm.step[-1]),
        peak_step=int(norm.step[int(np.argmin(norm.value) if shrank else np.argmax(norm.value))]),
        evidence={"before": before, "value": value, "last": last},
        fixes=(
            ("Lower the weight decay; leave norms and biases out of it.",)
            if shrank
            else ("Lower the learning rate, or raise the weight decay.", "Check that the gradient is clipped.")
        ),
    )


DETECTOR = Detector("weight_norm", "Weights collapse or run away", (NORM,), Params(), detect)
