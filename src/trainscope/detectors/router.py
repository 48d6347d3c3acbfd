"""router: a mixture of experts whose router does not learn, or sends everything to few experts.

What it finds
    A router that never gets a gradient, a load that stays concentrated after the first half of the run, and token
    counters that do not add up to tokens times experts per token: counted twice, in evaluation too, or not all.
Algorithm
    From a smoke run: the norm of the routers' gradient (exact), and the entropy of the load over its maximum,
    median over the last quarter. Counters: buffers such as ``tokens_per_expert`` beside a router with a declared
    ``top_k``, against what that router chose in the training forwards, exact; less is legitimate where a capacity
    is declared.
Parameters
    entropy: least normalised entropy of the load.
    start: share of the run before which concentration is normal.
False positives
    Routers that are not trained on purpose (hash routing) and named ``router``.
Misses
    Routers that neither have a usual name nor sit beside experts; counters under another name, or that hold a
    moving average.
Reference
    pytorch/torchtitan#1246 (one expert per layer gets every token), #1593 and #4148 (tokens counted twice, and in
    evaluation). Measured: healthy and faulty mixtures both
    concentrate before step 60, so nothing is judged early.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Detector, Skipped, needs_smoke, number

GRADIENT, LOAD = "smoke/router_gradient", "smoke/router_load_entropy"


@dataclass(frozen=True, slots=True)
class Params:
    """What counts as concentrated."""

    entropy: float = 0.5
    """Of the maximum; 1 is even. Half of it means that a minority of the experts does nearly all."""
    start: float = 0.75
    """Of the run."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding for a router without gradient, and one for a concentrated load."""
    skip = needs_smoke(run, GRADIENT, LOAD)
    if skip is not None:
        return skip
    findings = []
    gradient, load = run.get(GRADIENT), run.get(LOAD)
    if gradient is not None and not gradient.value.any():
        findings.append(
            _finding(
                GRADIENT,
                "Router without gradient",
                f"The routers' gradient is 0 at all {len(gradient)} steps: they never learn where to send tokens.",
                int(gradient.step[0]),
                int(gradient.step[-1]),
                0.0,
                "Multiply the experts' output by the routing weight, outside no_grad and detach.",
            )
        )
    if load is not None and len(load) >= 60:
        late = load.value[int(len(load) * params.start) :]
        level = float(np.median(late))
        if level < params.entropy:
            findings.append(
                _finding(
                    LOAD,
                    "Experts unevenly used",
                    f"The load's entropy is {number(level)} of its maximum over the last {len(late)} steps.",
                    int(load.step[len(load) - len(late)]),
                    int(load.step[-1]),
                    level,
                    "Check the balance loss: its coefficient, and that its gradient reaches the router.",
                )
            )
    return findings + _counters(run)


def _counters(run: Run) -> list[Finding]:
    counted, chosen, evaluated = (run.get(f"smoke/experts_{n}") for n in ("counted", "chosen", "chosen_in_evaluation"))
    drops = run.get("smoke/experts_may_drop")
    if counted is None or chosen is None or evaluated is None or drops is None:
        return []
    off = counted.value != chosen.value
    if drops.value.any():
        off &= counted.value > chosen.value
    # Moving averages and shares are no counts.
    if not off.any() or not (counted.value == np.round(counted.value)).all():
        return []
    at = int(np.argmax(off))
    ratio = float(np.median(counted.value[off] / chosen.value[off]))
    leaked = (counted.value == chosen.value + evaluated.value)[off].all()
    why = "those of evaluation among them" if leaked else f"{number(ratio)} times as many as were chosen"
    many = f"{int(off.sum())} of {len(off)} steps"
    message = (
        f"The experts' counters grew by {number(float(counted.value[at]))} at step {int(counted.step[at])}, the "
        f"routers chose {number(float(chosen.value[at]))} experts for tokens: {why}, at {many}."
    )
    return [
        _finding(
            "smoke/experts_counted",
            "Expert counters do not add up",
            message,
            int(counted.step[at]),
            int(counted.step[np.flatnonzero(off)[-1]]),
            ratio,
            "Count in training forwards only, once, and not again when a checkpointed layer runs a second time.",
        )
    ]


def _finding(metric: str, title: str, message: str, start: int, end: int, value: float, fix: str) -> Finding:
    return Finding(
        detector="router",
        severity=Severity.ERROR,
        title=title,
        message=message,
        metric=metric,
        start_step=start,
        end_step=end,
        evidence={"value": value},
        fixes=(fix,),
    )


DETECTOR = Detector("router", "Router does not learn or balance", (GRADIENT, LOAD), Params(), detect)
