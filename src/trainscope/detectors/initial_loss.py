"""initial_loss: the first loss is far above that of a model that knows nothing.

What it finds
    A classifier or language model whose cross entropy before the first step is above ln(classes): confident and
    wrong from the start, which an initialisation of too large a scale does.
Algorithm
    Direct comparison, from a smoke run: mean cross entropy per label of the first forward against the natural
    logarithm of the number of classes. Below is not judged: a pretrained model starts there.
Parameters
    above: how much above, in nat.
False positives
    Fine-tuning on another label set than the pretrained head's.
Misses
    Other objectives, and an initialisation that is too small. Wrong labels, which a model that knows nothing yet
    expects as much as the right ones, and a sum where a mean was meant, because the loss is taken per label.
Reference
    A. Karpathy, "A Recipe for Training Neural Networks", 2019: verify the loss at initialisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Detector, Skipped, needs_smoke, number


@dataclass(frozen=True, slots=True)
class Params:
    """What counts as above."""

    above: float = 0.7
    """nat: logits of standard deviation 1.2 at most."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding where the first loss is too high."""
    skip = needs_smoke(run)
    if skip is not None:
        return skip
    classes, first = facts.number(run, "smoke.vocabulary"), facts.number(run, "smoke.initial_cross_entropy")
    if classes is None or first is None or classes < 2 or not isfinite(first):
        return Skipped("needs a cross entropy over classes at the first step")
    knows_nothing = log(classes)
    if first <= knows_nothing + params.above:
        return []
    return [
        Finding(
            detector="initial_loss",
            severity=Severity.WARNING,
            title="First loss above chance",
            message=(
                f"The cross entropy before the first step is {number(first)}; a model that knows nothing of "
                f"{number(classes)} classes has {number(knows_nothing)}."
            ),
            metric="smoke/cross_entropy",
            start_step=run.first_step,
            end_step=run.first_step,
            evidence={"first": first, "chance": knows_nothing, "classes": classes},
            fixes=("Scale the initialisation of the embedding and the head down, such as a deviation of 0.02.",),
        )
    ]


DETECTOR = Detector("initial_loss", "First loss above chance", ("smoke/cross_entropy",), Params(), detect)
