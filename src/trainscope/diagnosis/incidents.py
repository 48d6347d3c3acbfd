"""Which signs belong together: one incident is one story.

Signs within 20 steps of each other are one incident (within three logging intervals, where that is more). Inside it
they stand by step, and at one step in the order in which a training step goes through its stages: what is earlier
can cause what is later, never the reverse.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from trainscope.core.run import Run
from trainscope.diagnosis.signs import Sign

REACH = 20
"""Steps. Measured: from a cause to the last of its first signs it is 1 to 16 steps in small models, and public
postmortems tell of 4 (BLOOM) to 8 (stale second moments)."""
INTERVALS = 3
"""Logging intervals, where that is more."""


def reach_of(run: Run) -> int:
    """Return how many steps apart two signs of one incident may be."""
    loss = run.get("train/loss") or max(run.series.values(), key=len, default=None)
    if loss is None or len(loss) < 2:
        return REACH
    return max(REACH, INTERVALS * int(np.median(np.diff(loss.step))))


def ordered(signs: Iterable[Sign]) -> tuple[Sign, ...]:
    """Return signs by step, then by stage, then the strongest first."""
    return tuple(sorted(signs, key=lambda s: (s.step, s.stage, -s.score, s.signal, s.where or "")))


def incidents(signs: Iterable[Sign], reach: int) -> list[tuple[Sign, ...]]:
    """Split signs into incidents.

    Parameters
    ----------
    signs : iterable of Sign
        In any order.
    reach : int
        Steps from the last sign of an incident within which another belongs to it.

    Returns
    -------
    list of tuple of Sign
        Incidents in the order of their onset, each in the order of :func:`ordered`. A sign of a later stage that
        begins while an earlier sign of the incident still lasts belongs to it too.
    """
    found: list[list[Sign]] = []
    for sign in ordered(signs):
        last = found[-1] if found else None
        if last is not None and _belongs(sign, last, reach):
            last.append(sign)
        else:
            found.append([sign])
    return [tuple(group) for group in found]


def _belongs(sign: Sign, group: list[Sign], reach: int) -> bool:
    if sign.step <= max(s.step for s in group) + reach:
        return True
    return any(s.stage < sign.stage and s.end_step is not None and sign.step <= s.end_step for s in group)
