"""eval_noise: the held-out loss jumps about so much that two checkpoints cannot be compared.

What it finds
    Evaluation noise, point to point, of at least `noise` of the level and of the whole improvement.
Algorithm
    The noise is measured from second differences (robust to a trend) and compared with the median level
    and with the fall from the first third of the evaluations to the last.
Parameters
    noise: smallest noise, as a fraction of the level.
False positives
    An evaluation loss that crosses zero; those are not judged.
Misses
    Noise that hides a difference you care about but is under `noise`: compute the standard error of your
    evaluation set.
Reference
    E. Miller, "Adding Error Bars to Evals", arXiv:2411.00640, on why evaluations need standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import is_reinforcement
from trainscope.core.robust import difference_sigma
from trainscope.core.run import Run
from trainscope.detectors.base import Detector, Skipped, number


@dataclass(frozen=True, slots=True)
class Params:
    """How much noise is too much."""

    noise: float = 0.15
    """Standard deviation from one evaluation to the next, as a fraction of the level."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding if the main evaluation loss is mostly noise."""
    series = run.get("eval/loss")
    if series is None or is_reinforcement(tuple(run.series)):
        return Skipped("needs eval/loss")
    loss = series.finite()
    if len(loss) < 8:
        return Skipped(f"needs 8 evaluations, has {len(loss)}")
    level = float(np.median(loss.value))
    if loss.value.min() <= 0 or level <= 0:
        return Skipped("needs an evaluation loss above 0")
    noise = difference_sigma(loss.value)
    third = max(3, len(loss) // 3)
    gained = float(np.median(loss.value[:third])) - float(np.median(loss.value[-third:]))
    if noise < params.noise * level or noise < 0.3 * gained:
        return []
    start, end = int(loss.step[0]), int(loss.step[-1])
    return [
        Finding(
            detector="eval_noise",
            severity=Severity.WARNING,
            title="Noisy evaluation",
            message=(
                f"{loss.name} moves by ±{number(noise)} ({noise / level:.0%} of its level) from one evaluation to the "
                f"next; differences below {number(2.8 * noise)} mean nothing."
            ),
            metric=loss.name,
            start_step=start,
            end_step=end,
            peak_step=int(loss.step[int(np.argmax(loss.value))]),
            evidence={"noise": noise, "level": level, "relative_noise": noise / level},
            fixes=(
                "Evaluate on more samples, always the same ones.",
                "Average several evaluations before comparing checkpoints.",
            ),
        )
    ]


DETECTOR = Detector("eval_noise", "Noisy evaluation", ("eval/loss",), Params(), detect)
