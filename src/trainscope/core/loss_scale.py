"""Which overflows a loss scale made: mixed precision tries larger scales on purpose and takes the step back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trainscope.core.run import Run

LOSS, SCALE, REFUSED = "train/loss", "amp/grad_scale", "amp/step_skipped"


def overflowed_on_purpose(run: Run) -> NDArray[np.integer]:
    """Return the steps whose gradients may be infinite because of a loss scale, and harmed nothing.

    Those that a GradScaler refused with a scale above 1 and a finite loss: at 1 or less, and after a loss that is
    not finite, no scale is to blame. Of the last step it is not known whether it was refused: it counts as one.
    """
    loss, scale, refused = run.get(LOSS), run.get(SCALE), run.get(REFUSED)
    if scale is None:
        return np.empty(0, dtype=np.int64)
    other = [scale.step[:-1] if refused is None else refused.step[refused.value == 0]]
    if loss is not None:
        other.append(loss.step[~np.isfinite(loss.value)])
    return np.setdiff1d(scale.step[scale.value > 1], np.concatenate(other))
