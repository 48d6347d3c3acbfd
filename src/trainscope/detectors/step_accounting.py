"""step_accounting: optimizer steps without a gradient of their own, or with an uneven number of micro-batches.

What it finds
    Steps before which no backward ran, an accumulation whose number of micro-batches keeps changing, and micro-batches
    that an epoch leaves over and that come to the first step of the next.
Algorithm
    Exact counts, from a smoke run. A step without a backward whose gradient is not that of the step before (nor what
    clipping left of it) got one by other means, such as ``torch.autograd.grad``. Two numbers of micro-batches are
    normal (the last window of an epoch is often short); three or more at over ``share`` of the steps are not. Nor is a
    larger one that comes once an epoch and is larger by just what the length of the loader leaves over.
Parameters
    steps: least number of steps without a backward.
    share: largest share of the steps that may differ from the usual number of micro-batches.
False positives
    Batches packed to a token budget, with as many micro-batches as it takes.
Misses
    An accumulation that is even, and wrong, such as gradients cleared at each micro-batch: see ``stale_gradients``
    and the comparison with a baseline.
Reference
    Lightning-AI/pytorch-lightning#21808, #19987 (accumulation wrong on short epochs).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, needs_smoke, number

NORM, CLIPPED = "train/grad_norm", "train/grad_norm_after_clip"
ROUNDING = 1e-6
"""Relative difference of a norm that is summed twice over the same numbers."""
BACKWARD, MICRO = "smoke/backward_calls", "micro_batches"


@dataclass(frozen=True, slots=True)
class Params:
    """How often is a fault."""

    steps: int = 2
    """Once may be a warm-up of the optimizer's state."""
    share: float = 0.2
    """Epochs of five windows, each with a short last one, are the edge."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding for empty steps, and one for an uneven accumulation."""
    skip = needs_smoke(run, BACKWARD)
    if skip is not None:
        return skip
    backward, micro = run.get(BACKWARD), run.get(MICRO)
    findings = []
    empty = [] if backward is None else _empty(run, backward)
    if len(empty) >= params.steps:
        findings.append(
            Finding(
                detector="step_accounting",
                severity=Severity.ERROR,
                title="Steps without a backward",
                message=f"The optimizer stepped {len(empty)} times without a backward, first at step {empty[0]}.",
                metric=BACKWARD,
                start_step=empty[0],
                end_step=empty[-1],
                evidence={"steps": len(empty)},
                fixes=("Step only after a backward: check the condition around optimizer.step().",),
            )
        )
    if micro is not None and len(micro) >= 10:
        findings += [f for f in (_uneven(micro, params) or _left_over(run, micro),) if f is not None]
    return findings


def _uneven(micro: Series, params: Params) -> Finding | None:
    counts, often = np.unique(micro.value, return_counts=True)
    usual = float(counts[np.argmax(often)])
    odd = micro.step[micro.value != usual]
    # A batch that grows in the course of training changes a few times only.
    if len(counts) <= 2 or min(len(odd), int(np.count_nonzero(np.diff(micro.value)))) <= params.share * len(micro):
        return None
    low, high = number(float(counts[0])), number(float(counts[-1]))
    return Finding(
        detector="step_accounting",
        severity=Severity.WARNING,
        title="Uneven accumulation",
        message=f"Between {low} and {high} micro-batches a step; {len(odd)} of {len(micro)} steps differ.",
        metric=MICRO,
        start_step=int(odd[0]),
        end_step=int(odd[-1]),
        evidence={"usual": usual, "steps": len(odd)},
        fixes=("Check the counter that decides when to step, and that it restarts with the epoch.",),
    )


def _left_over(run: Run, micro: Series) -> Finding | None:
    """Return a finding where what an epoch leaves over comes before the first step of the next, beside its own."""
    counts, often = np.unique(micro.value, return_counts=True)
    loaders = [one for one in facts.table(run, "smoke.loaders") if one.get("training")]
    batches = loaders[0].get("batches") if len(loaders) == 1 else None
    usual = int(counts[np.argmax(often)])
    if len(counts) != 2 or usual < 2 or not isinstance(batches, int):
        return None
    left, windows = batches % usual, batches // usual
    more = micro.step[micro.value == usual + left]
    if not left or len(more) < 2 or (np.diff(more) != windows).any():
        return None
    return Finding(
        detector="step_accounting",
        severity=Severity.WARNING,
        title="Micro-batches left over from the epoch before",
        message=(
            f"{len(more)} steps have {usual + left} micro-batches instead of {usual}: the {left} that an epoch of "
            f"{batches} batches leaves over come to the first step of the next, which adds or clears them."
        ),
        metric=MICRO,
        start_step=int(more[0]),
        end_step=int(more[-1]),
        evidence={"usual": usual, "left_over": left, "steps": len(more)},
        fixes=("Step once more at the end of an epoch, or drop what is left over: zero_grad before the next.",),
    )


def _empty(run: Run, backward: Series) -> list[int]:
    """Return the steps without a backward that have no gradient, or still that of the step before."""
    before, after = run.get(NORM), run.get(CLIPPED)
    norms = {} if before is None else dict(zip(before.step.tolist(), before.value.tolist(), strict=True))
    clipped = {} if after is None else dict(zip(after.step.tolist(), after.value.tolist(), strict=True))
    found = []
    for step in backward.step[backward.value == 0].tolist():
        norm = norms.get(step, 0.0)
        last = [kept[step - 1] for kept in (norms, clipped) if step - 1 in kept]
        if not norm or any(math.isclose(norm, one, rel_tol=ROUNDING) for one in last):
            found.append(int(step))
    return found


DETECTOR = Detector("step_accounting", "Steps and micro-batches do not add up", (BACKWARD, MICRO), Params(), detect)
