"""train_eval_gap: training loss falls while evaluation gets worse, far too soon.

What it finds
    A smoke run whose evaluation cross entropy ends far above both its own best and the training loss: a loop over
    a handful of batches, a slice of the data, a leak that evaluation does not have.
Algorithm
    Direct comparison, from a smoke run: the last evaluation against the median training cross entropy around it
    and against the best evaluation; both gaps beyond ``gap`` nat, or ``relative`` of the labels' entropy.
Parameters
    gap: nat.
    relative: share of the entropy of the labels.
False positives
    Overfitting a small data set on purpose; fine-tuning for many epochs.
Misses
    Scripts that do not evaluate with a cross entropy; leaks that evaluation shares.
Reference
    huggingface/transformers#31673; measured on a loader that loops over 8 batches: train 1.2, evaluation 3.0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Detector, Skipped, needs_smoke, number

TRAIN, EVAL = "smoke/cross_entropy", "smoke/eval_cross_entropy"


@dataclass(frozen=True, slots=True)
class Params:
    """How far apart is too far."""

    gap: float = 0.3
    """nat; healthy smoke runs: under 0.1."""
    relative: float = 0.15
    """Of the entropy of the labels."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding where evaluation leaves training behind."""
    skip = needs_smoke(run)
    if skip is not None:
        return skip
    train, evaluation = run.get(TRAIN), run.get(EVAL)
    if train is None or evaluation is None or len(evaluation.finite()) < 2:
        return Skipped("needs two evaluations with a cross entropy")
    evaluation = evaluation.finite()
    step, last = int(evaluation.step[-1]), float(evaluation.value[-1])
    best = float(np.min(evaluation.value))
    before = train.finite().value[train.finite().step <= step][-10:]
    entropy = facts.number(run, "smoke.label_entropy") or 0.0
    limit = max(params.gap, params.relative * entropy)
    if not len(before) or last - float(np.median(before)) <= limit or last - best <= limit / 2:
        return []
    return [
        Finding(
            detector="train_eval_gap",
            severity=Severity.ERROR,
            title="Evaluation leaves training behind",
            message=(
                f"At step {step} evaluation has a cross entropy of {number(last)} (best {number(best)}), training "
                f"{number(float(np.median(before)))}: the model learns these batches by heart."
            ),
            metric=EVAL,
            start_step=int(evaluation.step[np.argmin(evaluation.value)]),
            end_step=step,
            peak_step=step,
            evidence={"evaluation": last, "training": float(np.median(before)), "best": best, "limit": limit},
            fixes=(
                "Check how much of the data the sampler reaches, and that its order changes.",
                "Check for a leak of the labels into the inputs of training.",
            ),
        )
    ]


DETECTOR = Detector("train_eval_gap", "Evaluation leaves training behind", (TRAIN, EVAL), Params(), detect)
