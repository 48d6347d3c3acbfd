"""scheduler_pace: the learning-rate scheduler steps more often than the optimizer.

What it finds
    A scheduler that steps once a micro-batch, so that warm-up and decay run as many times too fast as gradients
    are accumulated.
Algorithm
    Exact counts, from a smoke run: more scheduler steps in a round than schedulers and optimizers account for, at
    most steps. A multiple that equals the number of processes is left out: Accelerate's scheduler steps once a
    process on purpose. So is a schedule that at this pace is as long as the run was told to be, or turned out to be.
Parameters
    share: share of the steps at which it must happen.
    deviation: how far the schedule's length may be off the run's to be meant.
False positives
    A scheduler that is deliberately driven by micro-batches, with a horizon in the same unit that it does not tell.
Misses
    One step a round, but with a horizon in the wrong unit: see the comparison with a baseline.
Reference
    Lightning-AI/pytorch-lightning#1476 (a warm-up of 16,000 steps lasted 1,000).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Detector, Skipped, needs_smoke, number
from trainscope.detectors.engine.schedule import read

STEPS = "smoke/scheduler_steps"


@dataclass(frozen=True, slots=True)
class Params:
    """How often is a fault."""

    share: float = 0.5
    """Of the recorded steps."""
    deviation: float = 0.05
    """Of the length; a warm-up may or may not be counted in."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding where schedulers outrun their optimizers."""
    skip = needs_smoke(run, STEPS)
    if skip is not None:
        return skip
    steps = run.get(STEPS)
    if steps is None or not steps.value.any():
        return Skipped("no scheduler steps in this run")
    expected = max(facts.number(run, "smoke.schedulers") or 1.0, facts.number(run, "smoke.optimizers") or 1.0)
    usual = float(np.median(steps.value))
    world = facts.number(run, "env.world_size") or 1.0
    fast = steps.step[steps.value > expected]
    if len(fast) <= params.share * len(steps) or (world > 1 and usual == world * expected):
        return []
    if _is_meant(run, len(steps), params):
        return []
    micro = run.get("micro_batches")
    accumulated = "" if micro is None else f", with {number(float(np.median(micro.value)))} micro-batches"
    return [
        Finding(
            detector="scheduler_pace",
            severity=Severity.ERROR,
            title="Scheduler outruns the optimizer",
            message=(
                f"The scheduler steps {number(usual)} times an optimizer step{accumulated}: warm-up and decay run "
                f"{number(usual / expected)} times too fast."
            ),
            metric=STEPS,
            start_step=int(fast[0]),
            end_step=int(fast[-1]),
            evidence={"scheduler_steps": usual, "expected": expected, "steps": len(fast)},
            fixes=("Call scheduler.step() once after optimizer.step(), outside the loop over micro-batches.",),
        )
    ]


def _is_meant(run: Run, steps: int, params: Params) -> bool:
    """Tell whether the schedule at its pace is as long as the run: declared so, or ended by the script itself."""
    schedule = read(run, 0.0, 0.0)
    ended = (float(steps),) if run.config.get("smoke.ended") == "script" else ()
    wanted = schedule.totals or ended
    return schedule.horizon is not None and any(abs(schedule.horizon / w - 1.0) <= params.deviation for w in wanted)


DETECTOR = Detector("scheduler_pace", "Scheduler outruns the optimizer", (STEPS,), Params(), detect)
