"""Where did training start over? Shared by the detectors that would otherwise call it something else.

A tuning script or a lost checkpoint starts the model again under the same growing step counter: the
learning rate falls to nothing, warms up again, and the loss is back where it was at the beginning.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from trainscope.core.robust import stretches
from trainscope.core.run import Run, Series

LOW = 0.05
"""Share of its peak under which a learning rate counts as restarted."""
AGAIN = 0.5
"""Share of its peak that it must reach again."""
NEAR = 0.02
"""Share of the run in which learning rate and loss must restart together."""


def restart_steps(run: Run) -> tuple[int, ...]:
    """Return the steps at which learning rate and training loss both begin again."""
    rate, loss = run.get("learning_rate"), run.get("train/loss")
    return _restarts(rate, loss) if rate is not None and loss is not None else ()


def near_restart(run: Run, step: int) -> bool:
    """Tell whether training started over within 2 % of the run of `step`."""
    span = (run.last_step or 0) - (run.first_step or 0)
    return any(abs(again - step) <= NEAR * span for again in restart_steps(run))


@lru_cache(maxsize=16)
def _restarts(rate: Series, loss: Series) -> tuple[int, ...]:
    rate, loss = rate.finite(), loss.finite()
    if len(rate) < 30 or len(loss) < 30:
        return ()
    peak = float(rate.value.max())
    first = float(np.max(loss.value[:3]))
    near = NEAR * float(loss.step[-1] - loss.step[0])
    low = rate.value <= LOW * peak
    found: list[int] = []
    edges = stretches(low)
    for i in (int(a) + int(np.argmin(rate.value[a:b])) for a, b in edges[:100]):
        step = float(rate.step[i])
        ahead = rate.value[i : i + max(3, len(rate) // 5)]
        before = loss.value[(loss.step > step - 2 * near) & (loss.step < step - 0.1 * near)]
        after = loss.value[(loss.step >= step - 0.1 * near) & (loss.step <= step + near)]
        worked = (rate.value[:i] > AGAIN * peak).any()
        if not worked or not len(before) or not len(after) or ahead.max() < AGAIN * peak:
            continue
        was = float(np.median(before))
        following = after[int(np.argmax(after)) :][:10]
        lasting = float(np.median(following)) >= 1.5 * was or after.max() >= max(0.9 * first, 4.0 * was)
        lasting = lasting and len(following) >= 8 and first >= 1.5 * was
        if lasting and after.max() >= 0.7 * first and (not found or step - found[-1] > 2 * near):
            found.append(int(step))
    return tuple(found)
