"""How far apart two good runs may end where they do not share seed, data order or random numbers."""

from __future__ import annotations

from math import sqrt

import numpy as np

from trainscope.diagnosis.base import Pair

# Two-sided 99 % quantiles of Student's t for 1, 2, ... degrees of freedom; 2.6 beyond.
_T99 = (63.66, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169)
LEAST = 3
"""Baselines from which their own spread says more than a rule of thumb."""


def half_width(pair: Pair, metric: str, fallback: float) -> float:
    """Return half the width of the band in which another good run is to be expected.

    Parameters
    ----------
    pair : Pair
    metric : str
        Compared by its mean over the last third.
    fallback : float
        Used with fewer than ``LEAST`` baselines.

    Returns
    -------
    float
        Half the 99 % prediction interval of one more run, from Student's t over the baselines' means.
    """
    means = ends_of(pair, metric)
    n = len(means)
    if n < LEAST:
        return fallback
    spread = float(np.std(means, ddof=1))
    quantile = _T99[n - 2] if n - 2 < len(_T99) else 2.6
    return quantile * spread * sqrt(1.0 + 1.0 / n)


def ends_of(pair: Pair, metric: str) -> list[float]:
    """Return the mean over the last third of `metric` in each baseline that has it."""
    means = []
    for run in pair.baselines:
        series = run.get(metric)
        value = None if series is None else series.finite().value
        if value is not None and len(value):
            means.append(float(np.mean(value[-max(1, len(value) // 3) :])))
    return means
