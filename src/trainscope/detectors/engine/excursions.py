"""When did a loss leave its level, and did it come back? The engine of four detectors.

Spikes, unrecovered spikes, level shifts and divergence are one family of events: the loss rises above
where it was. They are found here once, by class, so that one event is one finding; the modules
``spikes``, ``unrecovered_spike``, ``loss_shift`` and ``divergence`` each report their own class.

Four measures, in this order:

1. *Rise at the end*: block medians (1 % of the run each) at the end against the best block so far.
2. *Jumps*: each point against the median of the points before it, in scaled MADs, whitened by the lag-1
   autocorrelation; a point or a burst counts when fewer than ``false_alarms`` such are expected in the
   whole run under the tail that the run's own noise has (:mod:`trainscope.core.tails`).
3. *Bumps*: the same for medians of half a per cent of a long run each; of these only what comes back counts.
4. *Shifts*: a one-sided CUSUM against a level-only reference (never an extrapolated trend: on a convex
   decay that alarms on noise alone), confirmed by the medians on both sides.

Rises only: a falling loss is never an event. A rise counts only if it is also large enough to matter.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from trainscope.core.run import Series
from trainscope.detectors.engine.events import Excursion, Limits, Shape
from trainscope.detectors.engine.humps import humps
from trainscope.detectors.engine.jumps import jumps
from trainscope.detectors.engine.residuals import START
from trainscope.detectors.engine.shifts import end_rise, shifts


@lru_cache(maxsize=32)
def judged(loss: Series) -> Series:
    """Return the points of a loss that the engine judges: finite, and not the exact zeros that zero_loss reports.

    A stretch of zeros would else be the best level of the run, and its end a divergence.
    """
    keep = np.isfinite(loss.value) & (loss.value != 0.0)
    return loss if keep.all() else Series(loss.name, loss.step[keep], loss.value[keep])


@lru_cache(maxsize=32)
def excursions(series: Series, limits: Limits) -> tuple[Excursion, ...]:
    """Find every excursion of the finite points of `series`, in order of their start.

    A divergence swallows what lies inside it, a jump swallows the shift that it starts, and jumps
    that touch are one event.
    """
    value = series.finite().value
    if len(value) < START + 2:
        return ()
    diverged = end_rise(value, limits)
    found = [diverged] if diverged is not None else []
    for event in jumps(value, limits):
        small = event.shape is Shape.SHIFT and event.after - event.level < limits.shift_rise * abs(event.level)
        if not small and not _overlaps(event, found):
            found.append(event)
    for event in (*humps(value, limits), *shifts(value, limits)):
        if not _overlaps(event, found):
            found.append(event)
    return tuple(sorted(found, key=lambda e: (e.start, e.end)))


def _overlaps(event: Excursion, found: list[Excursion]) -> bool:
    margin = 5 + (event.end - event.start) // 2
    return any(event.start <= other.end and event.end >= other.start - margin for other in found)
