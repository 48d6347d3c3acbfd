"""How a router spreads its tokens over a run: concentrated, starving experts, saturated logits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from trainscope.core.run import FloatArray, IntArray, LayerTable, Run

FEWEST = 60
"""Steps below which nothing is said of a load: healthy mixtures concentrate in their first 60 too."""
EARLY = 100
"""Steps that are not judged for starving experts."""
RECENT = 200
"""Steps at the end over which an expert's share is a mean: fewer would count noise in small batches."""
LEAST_RECENT = 50
SUSTAINED = 50
"""Steps of a concentration that is more than a passing imbalance."""
SAMPLES = 20
"""Sampled steps of a router's logits."""


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """The shares of one router's experts over steps."""

    router: str
    step: IntArray
    shares: FloatArray
    """(n, experts); each row adds up to 1."""

    @property
    def experts(self) -> int:
        """Number of experts."""
        return int(self.shares.shape[1])

    def entropy(self) -> FloatArray:
        """Return the entropy of each step's load over its maximum; 1 is even."""
        shares = self.shares
        logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
        return np.asarray(-(shares * logs).sum(axis=1) / np.log(self.experts))

    def excess(self) -> FloatArray:
        """Return how far the fullest expert is above the mean, as a share of the most it can be."""
        experts = self.experts
        return np.asarray((self.shares.max(axis=1) * experts - 1) / (experts - 1))


def loads(run: Run) -> Iterator[Load]:
    """Yield the load of each router; the slots of a memory may be few by design."""
    if run.shares is None:
        return
    for block in run.shares.blocks():
        step, shares = run.shares.shares(block)
        if "addressor" in block.rsplit(".", 1)[-1].lower() or shares.ndim != 2 or shares.shape[1] < 2:
            continue
        good = np.isfinite(shares).all(axis=1)
        if good.any():
            yield Load(block, step[good], shares[good])


def uneven(load: Load, entropy: float) -> FloatArray:
    """Return how much worse than allowed each step's load is: 1 at the limit, below it in sound runs.

    Parameters
    ----------
    entropy : float
        Least normalised entropy. The same share of the largest possible excess of one expert is too much.
    """
    return np.asarray(np.maximum((1 - load.entropy()) / (1 - entropy), load.excess() / (1 - entropy)))


def worst_stretch(load: Load, entropy: float) -> tuple[int, int] | None:
    """Return the first and last step of a load that stays uneven for `SUSTAINED` steps after its beginning."""
    over = uneven(load, entropy)[FEWEST:]
    if len(over) < SUSTAINED:
        return None
    bad = np.flatnonzero(np.median(sliding_window_view(over, SUSTAINED), axis=1) > 1)
    if not len(bad):
        return None
    return int(load.step[FEWEST + bad[0]]), int(load.step[FEWEST + bad[-1] + SUSTAINED - 1])


def starving(load: Load, share: float) -> tuple[IntArray, int] | None:
    """Return the experts with less than a share of what is fair at the end, and since which step that is counted.

    Returns
    -------
    (m,) int64 array, int
        None where no expert starves, or the run is too short to tell.
    """
    begin = max(EARLY, len(load.step) - RECENT)
    if len(load.step) - begin < LEAST_RECENT:
        return None
    few = np.flatnonzero(load.shares[begin:].mean(axis=0) * load.experts < share)
    return (few.astype(np.int64), int(load.step[begin])) if len(few) else None


def logits_spread(table: LayerTable | None, router: str, start: float) -> tuple[float, int] | None:
    """Return the standard deviation of a router's logits at the end of a run, and since which step it is above that/2.

    The last module inside the router whose activations were recorded gives the logits. None where there is none, or
    where it gives shares: numbers between 0 and 1.

    Parameters
    ----------
    start : float
        Share of the run that is not judged.
    """
    if table is None or "act_std" not in table.metrics():
        return None
    inside = [name for name in table.layers() if name == router or name.startswith(f"{router}.")]
    for name in reversed(inside):
        spread = table.series(name, "act_std").finite()
        if len(spread) < SAMPLES:
            continue
        low, high = table.series(name, "act_min").finite(), table.series(name, "act_max").finite()
        if len(low) and len(high) and low.value.min() >= 0 and high.value.max() <= 1:
            return None
        level = float(np.median(spread.value[int(len(spread) * start) :]))
        since = int(spread.step[int(np.argmax(spread.value > level / 2))])
        return level, since
    return None
