"""The mean of a correlated sequence, and how far it can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np

from trainscope.core.run import FloatArray

LAG = 10
"""Steps over which the difference of two losses is taken to be correlated (design measurement: 1-6 in practice)."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its standard error."""

    value: float
    error: float
    """Newey-West standard error, in the unit of the values."""
    count: int

    def lower(self, confidence: float = 0.99) -> float:
        """Return the lower end of the two-sided interval of this confidence."""
        return self.value - _quantile(confidence) * self.error

    def upper(self, confidence: float = 0.99) -> float:
        """Return the upper end of the two-sided interval of this confidence."""
        return self.value + _quantile(confidence) * self.error


def mean_of(values: FloatArray, lag: int = LAG) -> Mean:
    """Return the mean of a stationary, possibly autocorrelated sequence.

    Parameters
    ----------
    values : (n,) float array
        Finite; n >= 1.
    lag : int
        Largest lag of the Bartlett kernel; cut to n - 1.

    Notes
    -----
    W. K. Newey, K. D. West, "A simple, positive semi-definite, heteroskedasticity and autocorrelation
    consistent covariance matrix", Econometrica 55(3), 1987.
    """
    n = len(values)
    mean = float(np.mean(values))
    rest = values - mean
    variance = float(rest @ rest) / n
    for j in range(1, min(lag, n - 1) + 1):
        variance += 2.0 * (1.0 - j / (lag + 1.0)) * float(rest[j:] @ rest[:-j]) / n
    return Mean(mean, sqrt(max(variance, 0.0) / n), n)


def _quantile(confidence: float) -> float:
    return NormalDist().inv_cdf(0.5 + confidence / 2.0)
