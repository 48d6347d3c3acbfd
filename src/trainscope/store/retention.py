"""Which steps stay: all of the newest, of older ones the one in each stretch that says most.

Disk stays bounded however long a run is: when the thinned-out part outgrows ``MAX_OLD_STEPS``, the
stretches double. Every thinning at least halves that part, so the work per recorded step does not grow
with the run.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MAX_OLD_STEPS = 5_000
"""Thinned-out steps a file keeps at most; with a decimation factor of 10, the first 50,000 steps of a run."""
SCALAR_WINDOW = 100_000
"""Steps of global scalars kept whole (about 15 MB): detectors that read the run later need every loss."""

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def one_per_stretch(step: IntArray, stretch: int, richness: NDArray[np.integer]) -> BoolArray:
    """Return a mask that keeps the richest (then first) of the steps in each `stretch`.

    Rich means many statistics: a step with activations and a histogram outlives its neighbours, whatever
    the phase of the sampling.

    Parameters
    ----------
    step, richness : (n,) int arrays
        Strictly increasing steps and how many statistics each has.
    """
    order = np.lexsort((step, -richness, step // stretch))
    bucket = (step // stretch)[order]
    first = np.ones(len(step), dtype=bool)
    first[1:] = bucket[1:] != bucket[:-1]
    mask = np.zeros(len(step), dtype=bool)
    mask[order[first]] = True
    return mask


def keep(step: IntArray, richness: NDArray[np.integer], *, window: int, factor: int, newest: int) -> BoolArray:
    """Return which of the steps stay: the last `window` up to `newest`, and few enough of those before.

    Parameters
    ----------
    factor : int
        Stretch to begin with; doubled until at most ``MAX_OLD_STEPS`` older steps stay.
    """
    old = step <= newest - window
    mask = ~old
    stretch = factor
    while True:
        kept = one_per_stretch(step[old], stretch, richness[old])
        if np.count_nonzero(kept) <= MAX_OLD_STEPS:
            break
        stretch *= 2
    mask[old] = kept
    return mask
