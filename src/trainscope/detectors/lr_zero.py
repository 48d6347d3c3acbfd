"""lr_zero: training goes on with a learning rate of exactly 0.

What it finds
    A learning rate of 0 for the whole run, for a stretch in the middle, or for more than `tail` of the
    run at its end.
Algorithm
    Direct comparison. The first points of a warm-up may be 0, and so may the last ones of a decay.
Parameters
    points: shortest stretch.
    tail: largest share of the run that may end at 0.
False positives
    A trainer that logs a learning rate rounded to too few digits.
Misses
    A learning rate that is tiny but not 0; see lr_schedule and plateau.
Reference
    huggingface/transformers#15508 and others: a schedule built with the wrong number of steps.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import Kind
from trainscope.core.robust import stretches
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, by_kind


@dataclass(frozen=True, slots=True)
class Params:
    """How long 0 is too long."""

    points: int = 10
    """Logged points in a row."""
    tail: float = 0.05
    """Share of the run."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding for the main learning rate if it is 0 for long."""
    main = run.get("learning_rate")
    rates = [main] if main is not None else by_kind(run, Kind.LEARNING_RATE)
    if not rates:
        return Skipped("needs learning_rate")
    found = []
    for rate in rates[:1]:
        finite = rate.finite()
        zero = finite.value == 0.0
        edges = stretches(zero)
        for begin, end in edges:
            at_end = end == len(finite)
            needed = params.points if not at_end or begin == 0 else max(params.points, params.tail * len(finite))
            at_start = begin == 0 and not at_end
            if end - begin >= (max(needed, 0.2 * len(finite)) if at_start else needed):
                found.append(_finding(finite, int(begin), int(end) - 1))
    return found[:1]


def _finding(rate: Series, begin: int, end: int) -> Finding:
    start, last = int(rate.step[begin]), int(rate.step[end])
    whole = begin == 0 and end == len(rate) - 1
    return Finding(
        detector="lr_zero",
        severity=Severity.ERROR,
        title="Learning rate is 0",
        message=f"{rate.name} is exactly 0 "
        + ("for the whole run" if whole else f"from step {start} to {last}")
        + ": the weights do not move.",
        metric=rate.name,
        start_step=start,
        end_step=last,
        peak_step=start,
        evidence={"points": end - begin + 1, "share": (end - begin + 1) / len(rate)},
        fixes=(
            "Check the number of steps given to the scheduler: per optimizer step, all epochs, after accumulation.",
            "Check that scheduler.step() is called once per optimizer step, not per batch or process.",
        ),
    )


DETECTOR = Detector("lr_zero", "Learning rate is 0", ("learning_rate",), Params(), detect)
