"""data_change: the batches come in another order than the baseline's, or no longer change.

What it finds
    A loader that lost its shuffling: indices asked for in order that were not in the baseline, or epochs that were
    all different there and are all alike now; augmentation that is lost, or new; a data set of another size (a
    subset, a sampler that no longer splits it over ranks); training on fewer or more different samples; evaluation on
    samples that were trained on; processes that no longer split the samples between them; inputs of another mean or
    spread, in training or in evaluation.
Algorithm
    Exact hashes of two smoke runs, what the loaders' samplers draw from, the number of different samples among the
    inputs of the model (also without a loader), and the mean and standard deviation of floating-point inputs.
Parameters
    input: largest difference of the inputs' mean or spread, in baseline standard deviations.
    size: largest relative difference of the samples that the loaders draw from; of evaluation an information.
    variety: least ratio, either way, of the numbers of different samples.
    seen: largest relative difference of all that were trained on at which those are compared.
False positives
    An intended change of the preprocessing: accept it as the new baseline.
Misses
    Means of inputs that are whole numbers, such as token ids; data without a loader of which a run sees only a part.
Reference
    minimind#503, insightface#377 (shuffling lost); trainscope's benchmark (a test set that is not normalised).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.detectors.base import Lack, Skipped, number
from trainscope.detectors.repeated_batches import BATCH, period_of
from trainscope.diagnosis.base import Compared, Comparer, Comparison, Pair
from trainscope.diagnosis.data_amount import leak, overlap, size_of, variety_of

LEAST_AGAIN = 8
"""Samples seen again below which nothing is said of augmentation."""
INPUTS = (("smoke/input_mean", "smoke/input_std"), ("smoke/eval_input_mean", "smoke/eval_input_std"))
SIZES = {"smoke/input_mean": "smoke/inputs", "smoke/eval_input_mean": "smoke/eval_inputs"}
"""How many numbers a mean is of."""
ALIKE = 0.1
"""Relative difference at which it is of other things: a tensor more, another model beside this one."""


@dataclass(frozen=True, slots=True)
class Params:
    """What counts as other inputs."""

    input: float = 0.2
    """Baseline standard deviations; batches of the same data vary by a few hundredths."""
    size: float = 0.01
    """Of the baseline's; a sample more or less is none."""
    variety: float = 1.5
    """Another order of the same data moves it by a few percent, other padding by up to a fifth."""
    seen: float = 0.1
    """Of the baseline's; the last batch of an epoch may be a small one."""


def compare(pair: Pair, params: Params) -> Compared | Skipped:
    """Compare batches and inputs."""
    if not facts.is_smoke(pair.run) or not facts.is_smoke(pair.base):
        return Skipped("needs two smoke runs", kind=Lack.RECORDING)
    differs = facts.first_difference(pair.run, pair.base, facts.BATCH)
    verdict = "same" if differs is None else f"other batches from step {differs} on"
    lines = [Comparison("batches", verdict, differs)]
    same = differs is None and facts.knows(pair.run, facts.BATCH) and facts.knows(pair.base, facts.BATCH)
    size = None if same else size_of(pair, params, training=True)
    # Augmentation makes every sample a different one, and says so more exactly.
    augmented = _augmented(pair)
    variety = None if same or augmented or size else variety_of(pair, params)
    one_each = (_in_order(pair) or _unshuffled(pair), augmented, variety, leak(pair), size, overlap(pair))
    found = (*one_each, size_of(pair, params, training=False), *_inputs(pair, params))
    findings = [f for f in found if f is not None]
    return Compared(tuple(findings), tuple(lines))


def _in_order(pair: Pair) -> Finding | None:
    """Return a finding where every training loader asks for its samples in order, and none did in the baseline."""
    mine, theirs = (
        [one.get("sequential") for one in facts.table(run, "smoke.loaders") if one.get("training")]
        for run in (pair.run, pair.base)
    )
    if not mine or not theirs or not all(mine) or any(order is not False for order in theirs):
        return None
    return Finding(
        detector="data_change",
        severity=Severity.WARNING,
        title="Training data no longer shuffled",
        message="The training loader asks for its samples in order; in the baseline it shuffled them.",
        metric=BATCH,
        start_step=pair.run.first_step,
        end_step=pair.run.last_step,
        evidence={"sequential": True},
        fixes=("Check shuffle=True or the sampler; if the order is meant, save a new baseline.",),
    )


def _augmented(pair: Pair) -> Finding | None:
    """Return a finding where samples that come again have changed in one of the runs only."""
    again, changed = (
        [facts.number(run, f"smoke.samples_{key}") or 0.0 for run in (pair.run, pair.base)]
        for key in ("again", "changed")
    )
    if min(again) < LEAST_AGAIN or (changed[0] > 0) == (changed[1] > 0):
        return None
    lost = changed[0] == 0
    return Finding(
        detector="data_change",
        severity=Severity.WARNING,
        title="Augmentation lost" if lost else "Samples are augmented",
        message=(
            f"Of {int(again[0])} samples that came again {int(changed[0])} had changed; in the baseline "
            f"{int(changed[1])} of {int(again[1])}."
        ),
        metric="smoke/input_hash",
        start_step=pair.run.first_step,
        end_step=pair.run.last_step,
        evidence={"again": again[0], "changed": changed[0], "baseline_changed": changed[1]},
        fixes=("Check which transforms the training data set gets; if the change is meant, save a new baseline.",),
    )


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
        if mean is None or std is None or not len(mean) or not len(std) or not _as_many(pair, mean_name):
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


def _as_many(pair: Pair, mean_name: str) -> bool:
    """Tell whether means are of as many numbers: a tensor that is handed over too is no other data."""
    both = pair.both(SIZES[mean_name])
    return both is None or not len(both) or abs(float(np.median(both.run / both.base)) - 1.0) <= ALIKE


COMPARER = Comparer("data_change", "Batches or inputs differ from the baseline", (BATCH,), Params(), compare)
