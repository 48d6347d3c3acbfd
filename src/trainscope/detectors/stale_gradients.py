"""stale_gradients: gradients are not cleared, or cleared at the wrong moment.

What it finds
    Gradients with which an optimizer has already stepped and that are still there at the next backward (a lost
    ``zero_grad``), and gradients that ``zero_grad`` throws away after the backward that made them, before any step.
Algorithm
    Exact, from a smoke run: the norm of what is left at the first backward after a step, and the count of
    ``zero_grad`` calls that discard something. The second is judged with a single optimizer only: a GAN's
    generator rightly leaves gradients in the discriminator that nobody wants.
Parameters
    steps: least number of steps at which it must happen.
    share: share of the steps above which gradients thrown away are a fault and not an information.
False positives
    Gradients that are read and combined by hand before they are cleared, as projections of several tasks' do.
    Accumulation over micro-batches happens before the step, and is not stale; weights that were moved by hand
    between (sharpness-aware minimisation) have used their gradients.
Misses
    A custom optimizer that clears its gradients itself but late.
Reference
    microsoft/DeepSpeed#7837 (zero_grad skipped with ZeRO-0 and bf16).
"""

from __future__ import annotations

from dataclasses import dataclass

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Detector, Skipped, needs_smoke, single_optimizer

STALE, DISCARDED = "smoke/stale_gradients", "smoke/zero_grad_after_backward"


@dataclass(frozen=True, slots=True)
class Params:
    """How often is a fault."""

    steps: int = 2
    """Once may be a warm-up before the loop."""
    share: float = 0.1
    """Of the steps; a loop that now and then leaves out a bad batch throws its gradients away on purpose."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding for gradients kept too long, and one for gradients thrown away."""
    skip = needs_smoke(run, STALE, DISCARDED)
    if skip is not None:
        return skip
    findings = []
    stale = facts.positive_steps(run.get(STALE))
    if len(stale) >= params.steps:
        findings.append(
            _finding(
                STALE,
                Severity.ERROR,
                "Gradients not cleared",
                f"At {len(stale)} steps the gradients of the step before were still there at the first backward: "
                "they are added to the new ones.",
                stale,
                "Call optimizer.zero_grad() once a step, before the first backward.",
            )
        )
    counts = run.get(DISCARDED) if single_optimizer(run) else None
    discarded = facts.positive_steps(counts)
    if counts is not None and len(discarded) >= params.steps:
        findings.append(
            _finding(
                DISCARDED,
                Severity.ERROR if len(discarded) > params.share * len(counts) else Severity.INFO,
                "Gradients thrown away",
                f"At {len(discarded)} steps zero_grad came after a backward and before the step: its gradients "
                "never reached the optimizer.",
                discarded,
                "Move zero_grad before the first backward, out of the loop over micro-batches.",
            )
        )
    return findings


def _finding(metric: str, severity: Severity, title: str, message: str, steps: list[int], fix: str) -> Finding:
    return Finding(
        detector="stale_gradients",
        severity=severity,
        title=title,
        message=message,
        metric=metric,
        start_step=steps[0],
        end_step=steps[-1],
        evidence={"steps": len(steps)},
        fixes=(fix,),
    )


DETECTOR = Detector("stale_gradients", "Gradients not cleared in time", (STALE, DISCARDED), Params(), detect)
