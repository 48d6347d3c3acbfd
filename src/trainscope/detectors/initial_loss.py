"""initial_loss: the first loss is far above that of a model that knows nothing.

What it finds
    A classifier or language model whose cross entropy before the first step is above ln(classes): confident and
    wrong from the start, which an initialisation of too large a scale does.
Algorithm
    Direct comparison. From a smoke run: mean cross entropy per label of the first forward against the natural
    logarithm of the number of classes. From a log whose settings have a ``vocab_size``: the median of the first three
    values of train/loss within the first hundredth of the run or 100 steps. Below is not judged: a pretrained model
    starts there.
Parameters
    above: how much above, in nat.
False positives
    Fine-tuning on another label set than the pretrained head's. In a log: a loss that is a sum of several cross
    entropies, or has other terms that are as large.
Misses
    Other objectives, and an initialisation that is too small. Wrong labels, which a model that knows nothing yet
    expects as much as the right ones, and a sum where a mean was meant, because the loss is taken per label.
Reference
    A. Karpathy, "A Recipe for Training Neural Networks", 2019: verify the loss at initialisation.
    LlamaFactory#7443: first losses of 13.7, 69 and 138, the larger the more micro-batches were accumulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log

import numpy as np

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import is_reinforcement
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, needs_smoke, number

EARLY = 100
"""Steps within which a first loss is one of a model that has hardly learned."""
SUMMED = 1.8
"""Times the loss of chance from which on a sum where a mean was meant is likelier than a bad initialisation."""


@dataclass(frozen=True, slots=True)
class Params:
    """What counts as above."""

    above: float = 0.7
    """nat: logits of standard deviation 1.2 at most."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding where the first loss is too high."""
    skip = needs_smoke(run)
    if skip is not None:
        of_log = _of_log(run, params)
        return skip if of_log is None else of_log
    classes, first = facts.number(run, "smoke.vocabulary"), facts.number(run, "smoke.initial_cross_entropy")
    if classes is None or first is None or classes < 2 or not isfinite(first):
        return Skipped("needs a cross entropy over classes at the first step")
    return _judge(run, first, classes, "smoke/cross_entropy", params)


def _of_log(run: Run, params: Params) -> list[Finding] | None:
    """Judge the first losses of a log that says how many tokens there are, None where it does not."""
    loss, rows = run.get("train/loss"), vocabulary(run)
    if loss is None or rows is None or run.x_axis != "step" or is_reinforcement(tuple(run.series)):
        return None
    early = loss.finite()
    early = Series(early.name, early.step[:3], early.value[:3])
    if len(early) < 3 or early.step[-1] > max(EARLY, (run.last_step or 0) // 100):
        return None
    return _judge(run, float(np.median(early.value)), rows, loss.name, params)


def vocabulary(run: Run) -> float | None:
    """Return how many tokens the settings beside a log say there are, None where they do not or disagree."""
    said = {v for key, v in run.config.items() if key.rpartition(".")[2] == "vocab_size"}
    rows = said.pop() if len(said) == 1 else None
    return float(rows) if isinstance(rows, int) and not isinstance(rows, bool) and rows >= 2 else None


def _judge(run: Run, first: float, classes: float, metric: str, params: Params) -> list[Finding]:
    knows_nothing = log(classes)
    if first <= knows_nothing + params.above:
        return []
    times = first / knows_nothing
    summed = times >= SUMMED
    return [
        Finding(
            detector="initial_loss",
            severity=Severity.WARNING,
            title="First loss above chance",
            message=(
                f"The {'cross entropy before the first step' if metric.startswith('smoke/') else 'first ' + metric} is "
                f"{number(first)}; a model that knows nothing of {number(classes)} classes has {number(knows_nothing)}."
            ),
            metric=metric,
            start_step=run.first_step,
            end_step=run.first_step,
            evidence={"first": first, "chance": knows_nothing, "classes": classes},
            fixes=(
                *(
                    (
                        f"It is {number(times)} times that: check that the loss is a mean over tokens, and divided "
                        "once by the number of micro-batches.",
                    )
                    if summed
                    else ()
                ),
                "Scale the initialisation of the embedding and the head down, such as a deviation of 0.02.",
            ),
        )
    ]


DETECTOR = Detector("initial_loss", "First loss above chance", ("smoke/cross_entropy", "train/loss"), Params(), detect)
