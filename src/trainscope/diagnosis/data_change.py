"""data_change: the batches come in another order than the baseline's, or no longer change.

What it finds
    A loader that lost its shuffling: epochs that were all different in the baseline and are all alike now; samples
    a step that changed; inputs of another mean or spread, in training or in evaluation.
Algorithm
    Exact hashes of two smoke runs, and the mean and standard deviation of the floating-point inputs.
Parameters
    input: largest difference of the inputs' mean or spread, in baseline standard deviations.
False positives
    An intended change of the preprocessing: accept it as the new baseline.
Misses
    Inputs that are whole numbers, such as token ids, but for their hashes.
Reference
    minimind#503, insightface#377 (shuffling lost); trainscope's benchmark (a test set that is not normalised).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.detectors.base import Skipped, number
from trainscope.detectors.repeated_batches import BATCH, period_of
from trainscope.diagnosis.base import Compared, Comparer, Comparison, Pair

INPUTS = (("smoke/input_mean", "smoke/input_std"), ("smoke/eval_input_mean", "smoke/eval_input_std"))


@dataclass(frozen=True, slots=True)
class Params:
    """What counts as other inputs."""

    input: float = 0.2
    """Baseline standard deviations; batches of the same data vary by a few hundredths."""


def compare(pair: Pair, params: Params) -> Compared | Skipped:
    """Compare batches and inputs."""
    if not facts.is_smoke(pair.run) or not facts.is_smoke(pair.base):
        return Skipped("needs two smoke runs")
    differs = facts.first_difference(pair.run, pair.base, facts.BATCH)
    verdict = "same" if differs is None else f"other batches from step {differs} on"
    lines = [Comparison("batches", verdict, differs)]
    findings = [f for f in (_unshuffled(pair), *_inputs(pair, params)) if f is not None]
    return Compared(tuple(findings), tuple(lines))


def _unshuffled(pair: Pair) -> Finding | None:
    mine, theirs = pair.run.get(BATCH), pair.base.get(BATCH)
    if mine is None or theirs is None or len(mine) < 10 or len(theirs) < 10:
        return None
    period = period_of(mine)
    if period is None or period_of(theirs) is not None:
        return None
    return Finding(
        detector="data_change",
        severity=Severity.WARNING,
        title="Batches no longer change",
        message=f"The same batches come again every {period} steps; in the baseline they do not.",
        metric=BATCH,
        start_step=int(mine.step[period]),
        end_step=int(mine.step[-1]),
        evidence={"period": period},
        fixes=("Check shuffle=True, the sampler's epoch, and where the generator is seeded.",),
    )


def _inputs(pair: Pair, params: Params) -> Iterator[Finding | None]:
    for mean_name, std_name in INPUTS:
        mean, std = pair.both(mean_name), pair.both(std_name)
        if mean is None or std is None or not len(mean) or not len(std):
            continue
        spread = float(np.median(std.base))
        if not spread > 0:
            continue
        moved = float(np.median(np.abs(mean.run - mean.base))) / spread
        widened = float(np.median(np.abs(std.run - std.base))) / spread
        if max(moved, widened) <= params.input or not np.isfinite(max(moved, widened)):
            continue
        where = "Evaluation" if "eval" in mean_name else "Training"
        yield Finding(
            detector="data_change",
            severity=Severity.WARNING,
            title=f"{where} sees other inputs",
            message=(
                f"{where} inputs have a mean of {number(float(np.median(mean.run)))} and a standard deviation of "
                f"{number(float(np.median(std.run)))}, in the baseline {number(float(np.median(mean.base)))} and "
                f"{number(spread)}."
            ),
            metric=mean_name,
            start_step=int(mean.step[0]),
            end_step=int(mean.step[-1]),
            evidence={"mean_moved": moved, "spread_changed": widened, "limit": params.input},
            fixes=("Check the normalisation, and that both data sets go through the same one.",),
        )


COMPARER = Comparer("data_change", "Batches or inputs differ from the baseline", (BATCH,), Params(), compare)
