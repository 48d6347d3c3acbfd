"""What the margins say about a loss of preference optimisation, which is a function of the pairs of its step.

A margin by which a pair is ranked the wrong way costs as much in the loss, and the spread of the margins, which starts
at 0, is the spread of the loss. Neither says that anything is wrong with the training.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trainscope.core.run import Run, Series
from trainscope.detectors.engine.events import Excursion
from trainscope.detectors.engine.rewards import named, rise

FloatArray = NDArray[np.float64]
PAID = 0.5
"""Of the rise of the loss that the margin must have fallen by: other pairs of the step may have done well."""
BEFORE = 25
"""Points that say where a margin was."""
SHARE = 0.6
"""Of the growth of the noise of the loss that the margins must show: the loss bends where they are large."""
LESS = -3.0
"""Standard errors by which fewer pairs are ranked right: then the noise is no sign of a policy that goes its way."""


def hard_pairs(run: Run, loss: Series, event: Excursion) -> bool:
    """Tell whether a rise of the loss is single steps whose own margins are as much lower.

    A policy that is damaged is so for more than one step: of two steps in a row, none is excused.

    Parameters
    ----------
    loss : Series
        Its finite points, to which the indices of `event` belong.
    """
    margin = named(run, "rewards", "margins")
    if margin is None:
        return False
    half = event.level + 0.5 * (event.top - event.level)
    high = event.start + np.flatnonzero(loss.value[event.start : event.end + 1] >= half)
    if np.any(np.diff(high) == 1):
        return False
    return all(_as_low(margin, int(loss.step[i]), float(loss.value[i]) - event.level) for i in high)


def _as_low(margin: Series, step: int, rise_: float) -> bool:
    at = int(np.searchsorted(margin.step, step))
    if at == len(margin) or margin.step[at] != step or at < 3:
        return False
    return float(np.median(margin.value[max(0, at - BEFORE) : at]) - margin.value[at]) >= PAID * rise_


def margins_spread(run: Run, start: int, end: int, times: float) -> bool:
    """Tell whether the margins jump about `times` as much from step `start` to `end`, and no fewer pairs are right.

    Noise that grew because training broke ranks fewer pairs the right way than before it.
    """
    margin, right = named(run, "rewards", "margins"), named(run, "rewards", "accuracies")
    if margin is None:
        return False
    before, after = (np.diff(_within(margin, *span)) for span in ((-math.inf, start), (start, end)))
    if min(len(before), len(after)) < BEFORE:
        return False
    grew = float(np.median(np.abs(after))) >= SHARE * times * float(np.median(np.abs(before)))
    ranked = margin if right is None else right
    return grew and rise(_within(ranked, -math.inf, start)[-4 * BEFORE :], _within(ranked, start, end)) > LESS


def _within(series: Series, start: float, end: float) -> FloatArray:
    return series.value[(series.step >= start) & (series.step < end)]
