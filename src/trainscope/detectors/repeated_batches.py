"""repeated_batches: the same batches come again before the data can be through.

What it finds
    The same batch at step after step, a short loop of batches, and a loader that asks for few of its samples
    again and again.
Algorithm
    Exact hashes, from a smoke run. The smallest period with which hashes recur; a period that is one epoch of the
    DataLoader (its length over the micro-batches of a step) is an order that is the same each epoch, an
    information; a shorter one, or one of at most ``loop`` steps without a DataLoader, is a fault. A training loader
    that asked k times for one of its n samples should have met n (1 - exp(-k / n)) different ones or more; where it
    has met few, and hardly any for the first time in the second half of the run, it is stuck with them. (One that
    repeats each sample on purpose goes on to new ones.)
Parameters
    loop: longest period that is taken for a loop where the length of an epoch is not known.
    share: share of the steps that must follow the period.
    covered: least share of the different samples to be expected from drawing with replacement.
    fresh: least share of them that come for the first time in the second half.
False positives
    Training on all of the data at once (a graph, collocation points), and overfitting one batch on purpose: both look
    like a batch that was taken out of the loop by mistake; switch the detector off there. Weighted sampling of data
    in which a class is rarer than one in a hundred.
Misses
    Data without a DataLoader that repeat in another order, or augmented.
Reference
    entrenar#294, Lightning-AI/pytorch-lightning#18780 (data repeated after a resume or at an epoch).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, needs_smoke

BATCH = "smoke/batch_hash"
LEAST = 10
LEAST_ASKED = 200
"""Samples below which nothing is said of how many were different."""


@dataclass(frozen=True, slots=True)
class Params:
    """What counts as a loop."""

    loop: int = 8
    """Steps; data that are through in so few are a test, not a training."""
    share: float = 0.9
    """Of the steps after the first period."""
    covered: float = 0.3
    """Classes that are balanced by drawing the rare ones (1 %) as often come to 0.6."""
    fresh: float = 0.1
    """Samples that are drawn evenly, each many times in a row, come to 0.5; a pool that is through comes to 0."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding for batches that recur too soon."""
    skip = needs_smoke(run, BATCH)
    if skip is not None:
        return skip
    batches = run.get(BATCH)
    if batches is None or len(batches) < LEAST:
        return Skipped(f"needs {LEAST} steps with {BATCH}")
    period = period_of(batches, params.share)
    if period is None:
        return _few(run, params)
    epoch = _epoch(run)
    fault = period < 0.9 * epoch if epoch is not None else period <= params.loop
    if period == 1:
        message, title = "Every step gets the same batch.", "The same batch every step"
    else:
        title = "Batches repeat"
        message = f"The same batches come again every {period} steps" + (
            ": each epoch visits them in the same order." if epoch is not None and not fault else "."
        )
    return [
        Finding(
            detector="repeated_batches",
            severity=Severity.ERROR if fault else Severity.INFO,
            title=title,
            message=message,
            metric=BATCH,
            start_step=int(batches.step[period]),
            end_step=int(batches.step[-1]),
            evidence={"period": period, **({} if epoch is None else {"epoch": epoch})},
            fixes=(
                "Build the generator or iterator once, before the loop, and seed it there.",
                "Let the loader shuffle, and set the epoch of a distributed sampler.",
            ),
        )
    ]


def _few(run: Run, params: Params) -> list[Finding]:
    """Return a finding for each training loader that asks for few of its samples."""
    found = []
    for loader in facts.table(run, "smoke.loaders"):
        size, asked, different, early = (
            loader.get(key) for key in ("samples", "asked", "different", "different_early")
        )
        if not loader.get("training") or not size or not asked or not different or asked < LEAST_ASKED:
            continue
        expected = size * (1.0 - math.exp(-asked / size))
        is_stuck = early is not None and different - early <= params.fresh * different
        if different < params.covered * expected and is_stuck:
            found.append(
                Finding(
                    detector="repeated_batches",
                    severity=Severity.WARNING,
                    title="Few of the samples are trained on",
                    message=(
                        f"A loader of {size} samples asked {asked} times for only {different} different ones; "
                        f"{expected:.0f} or more were to be expected."
                    ),
                    metric="smoke/data_order_hash",
                    start_step=run.first_step,
                    end_step=run.last_step,
                    evidence={"samples": size, "asked": asked, "different": different},
                    fixes=("Check the sampler, its weights, and where its generator is seeded.",),
                )
            )
    return found


def period_of(batches: Series, share: float = 0.9) -> int | None:
    """Return the smallest number of steps after which the batches recur, None if they do not within half the run."""
    values = batches.value
    candidates = np.flatnonzero(values[1:] == values[0]) + 1
    later = np.flatnonzero(values[LEAST // 2 + 1 :] == values[LEAST // 2]) + 1
    for period in np.unique(np.concatenate((candidates, later))).tolist():
        if period > len(values) // 2:
            return None
        if float(np.mean(values[period:] == values[:-period])) >= share:
            return int(period)
    return None


def _epoch(run: Run) -> float | None:
    """Return the steps of an epoch by the longest DataLoader, None where none was read."""
    lengths = [loader.get("batches") for loader in facts.table(run, "smoke.loaders")]
    known = [float(n) for n in lengths if isinstance(n, (int, float)) and n > 0]
    if not known:
        return None
    micro = run.get("micro_batches")
    per_step = 1.0 if micro is None else max(1.0, float(np.median(micro.value)))
    return max(known) / per_step


DETECTOR = Detector("repeated_batches", "Batches repeat", (BATCH,), Params(), detect)
