"""What experts' own token counters hold against what their routers chose."""

from __future__ import annotations

import numpy as np

from trainscope.core.run import Run
from trainscope.detectors.base import number


def miscount(run: Run) -> tuple[int, int, float, str] | None:
    """Return the first and last step at which counters do not add up, by how much, and in words; None if they do."""
    counted, chosen, evaluated = (run.get(f"smoke/experts_{n}") for n in ("counted", "chosen", "chosen_in_evaluation"))
    drops = run.get("smoke/experts_may_drop")
    if counted is None or chosen is None or evaluated is None or drops is None:
        return None
    off = counted.value != chosen.value
    if drops.value.any():
        off &= counted.value > chosen.value
    # Moving averages and shares are no counts.
    if not off.any() or not (counted.value == np.round(counted.value)).all():
        return None
    at = int(np.argmax(off))
    ratio = float(np.median(counted.value[off] / chosen.value[off]))
    leaked = (counted.value == chosen.value + evaluated.value)[off].all()
    why = "those of evaluation among them" if leaked else f"{number(ratio)} times as many as were chosen"
    message = (
        f"The experts' counters grew by {number(float(counted.value[at]))} at step {int(counted.step[at])}, the "
        f"routers chose {number(float(chosen.value[at]))} experts for tokens: {why}, at {int(off.sum())} of {len(off)} "
        "steps."
    )
    return int(counted.step[at]), int(counted.step[np.flatnonzero(off)[-1]]), ratio, message
