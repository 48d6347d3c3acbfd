"""Whether two runs may be compared step by step, and which baseline is the best partner."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainscope.core import facts
from trainscope.core.run import Run
from trainscope.diagnosis.base import Pair, Pairing, align

SAME_NOISE = 0.5
"""Least correlation of step-to-step loss changes that only shared batches bring about; independent streams: 0 ± 0.1."""
NEAR = 1e-3
"""Relative difference of losses that only rounding makes: fp32 1e-6, bf16 1e-3 (measured)."""
ENVIRONMENT = ("seed", "platform", "dtype", "torch", "device", "world_size")
"""Facts that must agree for a pair; what a recording does not say is taken to agree."""


def pair_with(run: Run, baselines: Sequence[Run]) -> Pair:
    """Return `run` with the baseline it pairs with, the first that does, else the first.

    Raises
    ------
    ValueError
        If there is no baseline.
    """
    if not baselines:
        raise ValueError("no baseline to compare with")
    pairings = [pairing_of(run, base) for base in baselines]
    best = next((i for i, p in enumerate(pairings) if p.exact), 0)
    return Pair(run, baselines[best], pairings[best], tuple(baselines))


def pairing_of(run: Run, base: Run) -> Pairing:
    """Tell whether differences at one step are the change's own, and if not, why."""
    reasons = environment_differences(run, base)
    stream = _stream_difference(run, base)
    return Pairing(not reasons and stream is None, (*reasons, *(() if stream is None else (stream,))))


def environment_differences(run: Run, base: Run) -> tuple[str, ...]:
    """Return the facts of :data:`ENVIRONMENT` in which the runs differ."""
    found = []
    for key in ENVIRONMENT:
        mine, theirs = facts.provenance(run, key), facts.provenance(base, key)
        if mine is not None and theirs is not None and mine != theirs:
            found.append(f"{key}: {theirs} in the baseline, now {mine}")
    return tuple(found)


def _stream_difference(run: Run, base: Run) -> str | None:
    """Tell how batches, first weights or random numbers differ; None if they agree or the losses do."""
    if _same_losses(run, base):
        return None
    batches = facts.first_difference(run, base, facts.BATCH)
    if batches is not None:
        return f"other batches from step {batches} on"
    weights = facts.initial_weights_differ(run, base)
    if weights:
        return "other first weights"
    random = facts.first_difference(run, base, facts.RANDOM)
    if random is not None:
        return f"another stream of random numbers from step {random} on"
    if facts.knows(run, facts.BATCH) and facts.knows(base, facts.BATCH):
        return None
    return None if _same_noise(run, base) else "the losses do not move together: other batches"


def _same_losses(run: Run, base: Run) -> bool:
    """Tell whether the losses agree to rounding throughout: then the streams must."""
    mine, theirs = run.get("train/loss"), base.get("train/loss")
    if mine is None or theirs is None:
        return False
    both = align(mine, theirs).finite()
    return bool(len(both)) and bool(np.median(np.abs(both.run - both.base) / (np.abs(both.base) + 1e-12)) <= NEAR)


def _same_noise(run: Run, base: Run) -> bool:
    """Tell whether step-to-step changes of the losses correlate, as they do on the same batches."""
    mine, theirs = run.get("train/loss"), base.get("train/loss")
    if mine is None or theirs is None:
        return False
    both = align(mine, theirs).finite()
    if len(both) < 12:
        return False
    a, b = np.diff(both.run), np.diff(both.base)
    if not a.any() or not b.any():
        return bool(np.array_equal(a, b))
    # Ranks, so that one spike does not decide.
    return float(np.corrcoef(np.argsort(np.argsort(a)), np.argsort(np.argsort(b)))[0, 1]) >= SAME_NOISE
