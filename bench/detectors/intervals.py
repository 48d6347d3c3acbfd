"""Confidence intervals of the bench's two kinds of figures: rates of false alarms, and shares of runs."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.stats import binomtest, chi2

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the two-sided 95 % interval around it."""

    value: float
    low: float
    high: float


def rate(count: int, steps: int, per: int = 10_000) -> Interval:
    """Return alarms per `per` steps with the exact Poisson interval (F. Garwood, Biometrika 28, 1936).

    Parameters
    ----------
    count : int
        Alarms seen.
    steps : int
        Steps watched, positive.
    """
    tail = (1.0 - CONFIDENCE) / 2.0
    low = chi2.ppf(tail, 2 * count) / 2.0 if count else 0.0
    high = chi2.ppf(1.0 - tail, 2 * count + 2) / 2.0
    return Interval(count / steps * per, float(low) / steps * per, float(high) / steps * per)


def share(hits: int, n: int) -> Interval:
    """Return `hits` of `n` with the interval of E. B. Wilson (JASA 22, 1927), which holds near 0 and 1 too."""
    if n == 0:
        return Interval(float("nan"), 0.0, 1.0)
    bounds = binomtest(hits, n).proportion_ci(CONFIDENCE, method="wilson")
    return Interval(hits / n, float(bounds.low), float(bounds.high))
