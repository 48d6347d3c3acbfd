"""data_change: the batches come in another order than the baseline's, or no longer change.

What it finds
    A loader that lost its shuffling: indices asked for in order that were not in the baseline, or epochs that were
    all different there and are all alike now; augmentation that is lost, or new; a data set of another size (a
    subset, a sampler that no longer splits it over ranks); training on fewer or more different samples; evaluation
    on samples that were trained on; inputs of another mean or spread, in training or in evaluation.
Algorithm
    Exact hashes of two smoke runs, the length of the loaders' samplers, the number of different samples among the
    inputs of the model (also without a loader), and the mean and standard deviation of floating-point inputs.
Parameters
    input: largest difference of the inputs' mean or spread, in baseline standard deviations.
    size: largest relative difference of the length of a sampler.
    variety: least ratio, either way, of the numbers of different samples.
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

LEAST_EVALUATED, MOSTLY, HARDLY = 20, 0.5, 0.1
"""Samples, and shares of them, by which an evaluation is told to be of the training data."""
LEAST_SEEN = 200
"""Samples below which nothing is said of how many were different."""
LEAST_AGAIN = 8
"""Samples seen again below which nothing is said of augmentation."""
INPUTS = (("smoke/input_mean", "smoke/input_std"), ("smoke/eval_input_mean", "smoke/eval_input_std"))


@dataclass(frozen=True, slots=True)
class Params:
    """What counts as other inputs."""

    input: float = 0.2
    """Baseline standard deviations; batches of the same data vary by a few hundredths."""
    size: float = 0.01
    """Of the baseline's; a sample more or less is none."""
    variety: float = 1.5
    """Another order of the same data moves it by a few percent, other padding by up to a fifth."""


def compare(pair: Pair, params: Params) -> Compared | Skipped:
    """Compare batches and inputs."""
    if not facts.is_smoke(pair.run) or not facts.is_smoke(pair.base):
        return Skipped("needs two smoke runs", kind=Lack.RECORDING)
    differs = facts.first_difference(pair.run, pair.base, facts.BATCH)
    verdict = "same" if differs is None else f"other batches from step {differs} on"
    lines = [Comparison("batches", verdict, differs)]
    sizes = [f for training in (True, False) if (f := _size(pair, params, training=training)) is not None]
    # Augmentation makes every sample a different one, and says so more exactly.
    augmented = _augmented(pair)
    variety = None if augmented or sizes else _variety(pair, params)
    one_each = (_in_order(pair) or _unshuffled(pair), augmented, variety, _leak(pair))
    found = (*one_each, *sizes, *_inputs(pair, params))
    findings = [f for f in found if f is not None]
    return Compared(tuple(findings), tuple(lines))


def _size(pair: Pair, params: Params, *, training: bool) -> Finding | None:
    """Compare the lengths of the samplers, of runs with as many loaders."""
    mine, theirs = (
        [one.get("samples") for one in facts.table(run, "smoke.loaders") if bool(one.get("training")) is training]
        for run in (pair.run, pair.base)
    )
    now, then = (sum(n for n in sizes if isinstance(n, int)) for sizes in (mine, theirs))
    if not now or not then or len(mine) != len(theirs) or None in (*mine, *theirs):
        return None
    if abs(now - then) <= params.size * then:
        return None
    what = "Training" if training else "Evaluation"
    return Finding(
        detector="data_change",
        severity=Severity.WARNING,
        title=f"{what} data of another size",
        message=f"{what} loaders have {now} samples, in the baseline {then}.",
        metric=f"smoke/{what.lower()}_samples",
        evidence={"samples": now, "baseline": then},
        fixes=("Check the split, the sampler and the number of processes; if it is meant, save a new baseline.",),
    )


def _leak(pair: Pair) -> Finding | None:
    """Return a finding where most of what is evaluated was trained on, and little of it in the baseline."""
    mine, theirs = facts.values(pair.run, "smoke.rows_evaluated"), facts.values(pair.base, "smoke.rows_evaluated")
    if len(mine) != 2 or len(theirs) != 2 or min(mine[0], theirs[0]) < LEAST_EVALUATED:
        return None
    if mine[1] < MOSTLY * mine[0] or theirs[1] > HARDLY * theirs[0]:
        return None
    if mine[0] - mine[1] > MOSTLY * (theirs[0] - theirs[1]):
        return None  # the training data are evaluated beside the others
    return Finding(
        detector="data_change",
        severity=Severity.WARNING,
        title="Evaluation on training samples",
        message=(
            f"{mine[1]:.0f} of {mine[0]:.0f} different samples that were evaluated were trained on as well, in the "
            f"baseline {theirs[1]:.0f} of {theirs[0]:.0f}."
        ),
        metric="smoke/rows_evaluated",
        evidence={"evaluated": mine[0], "trained": mine[1], "baseline_trained": theirs[1]},
        fixes=("Check the split, and which data set the evaluation gets.",),
    )


def _variety(pair: Pair, params: Params) -> Finding | None:
    """Compare how many different samples each model was trained on, in as many steps."""
    mine, theirs = facts.pairs(pair.run, "smoke.rows"), facts.pairs(pair.base, "smoke.rows")
    steps = [facts.number(run, "smoke.steps") for run in (pair.run, pair.base)]
    if len(mine) != len(theirs) or steps[0] != steps[1]:
        return None
    for (seen, now), (seen_then, then) in zip(mine, theirs, strict=True):
        if min(seen, seen_then) < LEAST_SEEN or 1 / params.variety <= now / then <= params.variety:
            continue
        return Finding(
            detector="data_change",
            severity=Severity.WARNING,
            title=f"Training on {'fewer' if now < then else 'more'} different samples",
            message=(
                f"Training saw {now} different samples among {seen}, in the baseline {then} among {seen_then} in as "
                f"many steps."
            ),
            metric="smoke/rows",
            evidence={"different": now, "baseline": then, "limit": params.variety},
            fixes=("Check where batches are drawn from, and with which generator; or save a new baseline.",),
        )
    return None


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
