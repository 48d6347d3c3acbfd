"""A balance loss that does not follow the load that it is to balance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainscope.core.run import Run
from trainscope.detectors.engine.expert_load import FEWEST, Load

OBJECTIVE, TASK = "smoke/objective", "smoke/cross_entropy"
LEAST = 100
"""Steps that must be there."""
PART = 1e-4
"""Of the objective: less is rounding, or no balance loss."""
FLAT = 2e-3
"""Largest spread of a constant, as a share of it, that rounding of the objective leaves. Healthy ones spread by 0.014
and more."""
MOVED = 0.1
"""Least spread of the load, as the share of the largest possible excess of one expert, that a loss must notice."""


def constant_balance(run: Run, loads: Sequence[Load]) -> tuple[int, float, float] | None:
    """Return since when, how large and beside what spread of the load a balance loss is constant; None if none is."""
    whole, task = run.get(OBJECTIVE), run.get(TASK)
    if whole is None or task is None or not loads:
        return None
    step, a, b = np.intersect1d(whole.step, task.step, assume_unique=True, return_indices=True)
    rest, late = whole.value[a] - task.value[b], step >= step[0] + FEWEST if len(step) else step > 0
    rest, step = rest[late], step[late]
    if len(rest) < LEAST or not np.isfinite(rest).all():
        return None
    level = float(np.median(rest))
    low, high = np.quantile(rest, (0.05, 0.95))
    if level <= PART * float(np.median(np.abs(whole.value[a]))) or high - low > FLAT * level:
        return None
    spreads = [np.ptp(np.quantile(one.excess()[one.step >= step[0]], (0.05, 0.95))) for one in loads if len(one.step)]
    most = max((float(s) for s in spreads), default=0.0)
    return (int(step[0]), level, most) if most >= MOVED else None
