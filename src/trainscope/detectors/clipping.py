"""clipping: gradient clipping that does not clip what the optimizer gets.

What it finds
    Clipping before the last backward of a step, clipping of gradients that still carry the loss scale, clipping of
    parameters that have no gradient while others do, and a gradient that is larger than ``max_norm`` when the optimizer
    gets it.
Algorithm
    Exact order of calls, from a smoke run. The size is judged where one call clipped the whole gradient (its norm
    is the norm of the step), with room for rounding. Runs with several optimizers are not judged: each may clip its
    own share at its own time.
Parameters
    over: factor over ``max_norm`` that is not rounding.
    share: share of the clipped steps at which it must happen.
False positives
    None known.
Misses
    Clipping written by hand. A part of the model where the whole was meant: that may be meant.
Reference
    nano-world-model#22 (clipping above backward: the norm was never capped; published checkpoints affected).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import IntArray, Run
from trainscope.detectors.base import Detector, Skipped, needs_smoke, number, single_optimizer

CALLS, SEEN, BACKWARD = "smoke/clip_calls", "smoke/clip_backward_calls", "smoke/backward_calls"


@dataclass(frozen=True, slots=True)
class Params:
    """What counts as not clipped."""

    over: float = 1.05
    """clip_grad_norm_ itself leaves at most max_norm, to rounding."""
    share: float = 0.5
    """Of the steps that clip."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding for each way in which clipping misses."""
    skip = needs_smoke(run)
    if skip is not None:
        return skip
    calls = run.get(CALLS)
    if calls is None or not calls.value.any():
        return Skipped("this run does not clip gradients")
    if not single_optimizer(run):
        return Skipped("several optimizers step: each may clip its own share")
    clipped = calls.step[calls.value > 0]
    findings = []
    for title, message, steps, fix in (
        (
            "Clipped too early",
            "came before the last backward of the step: what it saw is not what the optimizer got",
            _early(run, clipped),
            "Call clip_grad_norm_ after the last backward and right before optimizer.step().",
        ),
        (
            "Clipped before unscaling",
            "saw gradients that still carried the loss scale",
            _positive(run, "smoke/clip_scaled"),
            "Call scaler.unscale_(optimizer) before clip_grad_norm_.",
        ),
        (
            "Clipping of nothing",
            "found no gradient in what it was given, while the optimizer got one",
            _nothing(run),
            "Clip the parameters that the optimizer has: not a copy of the model, nor an iterator that is used up.",
        ),
        (
            "Clipping without effect",
            f"left a gradient over {params.over} times max_norm",
            _over(run, params),
            "Check which parameters are clipped, and what is added to their gradients afterwards.",
        ),
    ):
        if len(steps) > params.share * len(clipped):
            findings.append(_finding(title, message, steps, len(clipped), fix))
            break
    return findings


def _values(run: Run, *names: str) -> tuple[IntArray, tuple[np.ndarray[tuple[int], np.dtype[np.float64]], ...]]:
    """Return some series at the steps that all of them have."""
    series = [s for s in (run.get(name) for name in names) if s is not None]
    if len(series) < len(names):
        return np.array([], dtype=np.int64), tuple(np.array([]) for _ in names)
    step = series[0].step
    for one in series[1:]:
        step = np.intersect1d(step, one.step, assume_unique=True)
    return step, tuple(one.value[np.searchsorted(one.step, step)] for one in series)


def _early(run: Run, clipped: IntArray) -> IntArray:
    step, (seen, backward) = _values(run, SEEN, BACKWARD)
    early: IntArray = step[(seen < backward) & np.isin(step, clipped)]
    return early


def _positive(run: Run, name: str) -> IntArray:
    step, (value,) = _values(run, name)
    positive: IntArray = step[value > 0]
    return positive


def _nothing(run: Run) -> IntArray:
    step, (calls, before, norm) = _values(run, CALLS, "smoke/clip_norm_before", "train/grad_norm")
    nothing: IntArray = step[(calls == 1) & (before == 0) & (norm > 0)]
    return nothing


def _over(run: Run, params: Params) -> IntArray:
    step, (calls, most, before, norm, after) = _values(
        run, CALLS, "smoke/clip_max_norm", "smoke/clip_norm_before", "train/grad_norm", "train/grad_norm_after_clip"
    )
    whole = (calls == 1) & (np.abs(before - norm) <= 0.01 * norm)
    over: IntArray = step[whole & (after > params.over * most)]
    return over


def _finding(title: str, message: str, steps: IntArray, clipped: int, fix: str) -> Finding:
    return Finding(
        detector="clipping",
        severity=Severity.ERROR,
        title=title,
        message=f"At {number(len(steps))} of {clipped} steps that clip, clipping {message}.",
        metric="train/grad_norm_after_clip",
        start_step=int(steps[0]),
        end_step=int(steps[-1]),
        evidence={"steps": len(steps), "clipped_steps": clipped},
        fixes=(fix,),
    )


DETECTOR = Detector("clipping", "Clipping that does not clip", (CALLS, SEEN, BACKWARD), Params(), detect)
