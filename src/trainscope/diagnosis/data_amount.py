"""How much data a run trains and evaluates on, compared with its baseline: one part of data_change."""

from __future__ import annotations

from typing import Protocol

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.diagnosis.base import Pair

LEAST_EVALUATED, MOSTLY, HARDLY = 20, 0.5, 0.1
"""Samples, and shares of them, by which an evaluation is told to be of the training data."""
PADDING = 0.02
"""Share of samples that ranks which split an epoch may have in common."""
LEAST_SEEN = 200
"""Samples below which nothing is said of how many were different."""


class Limits(Protocol):
    """What of the comparer's parameters is needed here."""

    @property
    def size(self) -> float:
        """Largest relative difference of what loaders draw from."""

    @property
    def variety(self) -> float:
        """Least ratio of the numbers of different samples."""

    @property
    def seen(self) -> float:
        """Largest relative difference of all samples at which those are compared."""


def size_of(pair: Pair, limits: Limits, *, training: bool) -> Finding | None:
    """Compare how many samples loaders draw from, of runs with as many."""
    mine, theirs = (
        [one.get("samples") for one in facts.table(run, "smoke.loaders") if bool(one.get("training")) is training]
        for run in (pair.run, pair.base)
    )
    now, then = (sum(n for n in sizes if isinstance(n, int)) for sizes in (mine, theirs))
    if not now or not then or len(mine) != len(theirs) or None in (*mine, *theirs):
        return None
    if abs(now - then) <= limits.size * then:
        return None
    what = "Training" if training else "Evaluation"
    return Finding(
        detector="data_change",
        # A part of the test set is often evaluated on purpose, to save time; what it says is compared by itself.
        severity=Severity.WARNING if training else Severity.INFO,
        title=f"{what} data of another size",
        message=f"{what} loaders have {now} samples, in the baseline {then}.",
        metric=f"smoke/{what.lower()}_samples",
        evidence={"samples": now, "baseline": then},
        fixes=("Check the split, the sampler and the number of processes; if it is meant, save a new baseline.",),
    )


def overlap(pair: Pair) -> Finding | None:
    """Return a finding where ranks are given each other's samples, and split them in the baseline."""
    mine, theirs = (facts.number(run, "smoke.ranks_shared") for run in (pair.run, pair.base))
    if mine is None or theirs is None or mine < HARDLY or theirs > PADDING:
        return None
    return Finding(
        detector="data_change",
        severity=Severity.WARNING,
        title="Ranks share samples",
        message=(
            f"{100 * mine:.0f} % of the samples that the first process trains on at first are another's too, in the "
            f"baseline {100 * theirs:.0f} %."
        ),
        metric="smoke/ranks_shared",
        evidence={"shared": mine, "baseline": theirs, "limit": HARDLY},
        fixes=("Give each process its own part of one order: a DistributedSampler with the same seed on all.",),
    )


def variety_of(pair: Pair, limits: Limits) -> Finding | None:
    """Compare how many different samples each model was trained on, in as many steps."""
    # By size, since which model comes first hangs on the order of the optimizers.
    mine, theirs = (sorted(facts.pairs(run, "smoke.rows")) for run in (pair.run, pair.base))
    steps = [facts.number(run, "smoke.steps") for run in (pair.run, pair.base)]
    if len(mine) != len(theirs) or steps[0] != steps[1]:
        return None
    for (seen, now), (seen_then, then) in zip(mine, theirs, strict=True):
        # Other shapes (packed sequences, another forward) count otherwise what may be the same data.
        if min(seen, seen_then) < LEAST_SEEN or abs(seen - seen_then) > limits.seen * seen_then:
            continue
        if 1 / limits.variety <= now / then <= limits.variety:
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
            evidence={"different": now, "baseline": then, "limit": limits.variety},
            fixes=("Check where batches are drawn from, and with which generator; or save a new baseline.",),
        )
    return None


def leak(pair: Pair) -> Finding | None:
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
