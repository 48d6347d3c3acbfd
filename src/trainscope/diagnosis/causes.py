"""What can have broken a run, weighed by the signs of one incident."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainscope.core.run import Run
from trainscope.diagnosis.signs import Cause, Explanation, Sign, Stage

EXACT: Mapping[str, tuple[Cause, float]] = {
    "optimizer_state": (Cause.OPTIMIZER, 3.0),
    "clipping": (Cause.OPTIMIZER, 2.0),
    "lr_schedule": (Cause.SCHEDULE, 3.0),
    "lr_zero": (Cause.SCHEDULE, 3.0),
    "scheduler_pace": (Cause.SCHEDULE, 3.0),
    "non_finite_origin": (Cause.NUMERICS, 2.0),
    "non_finite": (Cause.NUMERICS, 1.0),
    "zero_loss": (Cause.NUMERICS, 2.0),
    "parameters_not_training": (Cause.STRUCTURE, 3.0),
    "stale_gradients": (Cause.STRUCTURE, 3.0),
    "step_accounting": (Cause.STRUCTURE, 3.0),
    "repeated_batches": (Cause.STRUCTURE, 3.0),
    "eval_mode": (Cause.STRUCTURE, 3.0),
    "initial_loss": (Cause.STRUCTURE, 1.0),
    "unigram_floor": (Cause.STRUCTURE, 2.0),
    "loss_floor": (Cause.STRUCTURE, 2.0),
    "rank_divergence": (Cause.STRUCTURE, 3.0),
    "router": (Cause.ROUTING, 3.0),
    "overfitting": (Cause.GENERALIZATION, 1.0),
    "train_eval_gap": (Cause.GENERALIZATION, 1.0),
}
"""Detector id to the cause that it speaks for, and how strongly. What counts exactly speaks louder than a symptom."""


@dataclass(frozen=True, slots=True)
class _Case:
    cause: Cause
    strength: float
    sign: Sign


def explain(signs: Sequence[Sign], run: Run) -> tuple[Explanation, ...]:  # noqa: ARG001
    """Return the possible causes of one incident, most likely first.

    Parameters
    ----------
    signs : sequence of Sign
        In order.
    run : Run
    """
    cases = [
        _Case(EXACT[s.detector][0], EXACT[s.detector][1], s)
        for s in signs
        if s.detector is not None and s.detector in EXACT
    ]
    total = sum(c.strength for c in cases)
    found = []
    for cause in dict.fromkeys(c.cause for c in cases):
        own = [c for c in cases if c.cause is cause]
        lead = max(own, key=lambda c: c.strength).sign
        found.append(
            Explanation(
                cause=cause,
                title=f"{lead.signal} {lead.event}",
                weight=sum(c.strength for c in own) / total,
                because=tuple(f"{c.sign.signal} {c.sign.event}" for c in own),
                layer=next((c.sign.where for c in own if c.sign.where is not None), None),
            )
        )
    return tuple(sorted(found, key=lambda e: -e.weight))


__all__ = ["EXACT", "Stage", "explain"]
