"""How surprising an outlier is, given the tail that this very run's noise has.

A fixed threshold is wrong twice: at 8 sigma it misses nothing on Gaussian noise and alarms on every
long run with Student-t noise of three degrees of freedom. So the tail is estimated from the run: the
bulk of its residuals decides between Student-t and Weibull laws, and the answer is the posterior predictive
probability of exceeding a value (Bayesian model averaging over a grid of tail weights and scales;
J. Hoeting et al., Statistical Science 14(4), 1999). Points far out are left out of the fit, so that
an outlier cannot vouch for itself.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

DEGREES = (2.0, 3.0, 4.0, 6.0, 10.0, 30.0)
"""Degrees of freedom considered; 30 stands for Gaussian and never underestimates its tail."""
SHAPES = (0.6, 1.0)
"""Weibull shapes considered: 1 is exponential (Laplace noise), less is skewed noise such as log-normal."""
SCALES = tuple(2.0 ** (k / 4.0) for k in range(-6, 7))
"""Ratio of the upper side's scale to the MAD's; skewed noise needs more than 1."""
CAP = 6.0
"""Residuals beyond this many scaled MADs are left out of the fit."""
ENOUGH = 60
"""With this many residuals beyond 1.5 scaled MADs, only those are fitted: the shape of the body says nothing then."""
SHORT_TAILED = 4.0
"""Highest of ``MANY`` residuals, in scaled MADs, up to which noise is short-tailed: with a tail index of 3, one is
higher in 99 runs of 100."""
MANY = 500
SHORT_BUDGET = 10.0
"""Times the false alarms that a jump in short-tailed noise may have if it is twice as high as any other residual. The
few points far out leave so much open; in 420 healthy runs with heavy tails nothing was flagged by it, 10 without the
first condition."""
_BINS = np.linspace(0.0, CAP, 61)
_BODY = 15
_FAR = np.concatenate((_BINS, CAP * np.geomspace(1.0, 1e3, 31)[1:]))
"""Bins of residuals that are known to be noise, far out too; what is beyond the last is in it."""
_FAR_EDGES = _FAR.tolist()


@cache
def _student(dof: float) -> tuple[FloatArray, FloatArray]:
    """Grid of z in the law's own scaled MADs, and log of P(Z > z | Z > 0) on it."""
    x = np.concatenate(([0.0], np.geomspace(1e-4, 1e5, 6000)))
    log_norm = math.lgamma((dof + 1) / 2) - math.lgamma(dof / 2) - 0.5 * math.log(dof * math.pi)
    density = np.exp(log_norm - (dof + 1) / 2 * np.log1p(x * x / dof))
    pieces = 0.5 * (density[1:] + density[:-1]) * np.diff(x)
    beyond = density[-1] * x[-1] / dof
    survival = np.append(np.cumsum(pieces[::-1])[::-1], 0.0) + beyond
    survival = survival / survival[0]
    median = float(np.interp(-0.5, -survival, x))
    return x / (1.4826 * median), np.log(survival)


def _log_student(dof: float, z: FloatArray) -> FloatArray:
    grid, log_sf = _student(dof)
    far = log_sf[-1] - dof * np.log(np.maximum(z, grid[-1]) / grid[-1])
    return np.where(z > grid[-1], far, np.interp(z, grid, log_sf))


def _log_weibull(shape: float, z: FloatArray) -> FloatArray:
    median = math.log(2.0) ** (1.0 / shape)
    return np.asarray(-((z * 1.4826 * median) ** shape))


LAWS = (*((_log_student, dof) for dof in DEGREES), *((_log_weibull, shape) for shape in SHAPES))


@dataclass(frozen=True, slots=True)
class Tail:
    """The upper tail of one run's noise."""

    n: int
    """How many residuals lie above zero."""
    weights: tuple[tuple[int, float, float], ...]
    """(index into ``LAWS``, scale, posterior weight) of the laws that matter."""

    def log_probability(self, z: FloatArray) -> FloatArray:
        """Log of the probability that one upward residual exceeds each `z` (scaled MADs, > 0)."""
        total = np.full(np.shape(z), -np.inf)
        for law, scale, weight in self.weights:
            survival, parameter = LAWS[law]
            total = np.logaddexp(total, math.log(weight) + survival(parameter, np.asarray(z) / scale))
        return total


def fit_tail(z: FloatArray) -> Tail:
    """Fit the upper tail of residuals.

    Parameters
    ----------
    z : (n,) float64 array
        Residuals in scaled MADs; only the positive ones up to ``CAP`` are used.
    """
    return _fitted(np.histogram(z, _BINS)[0].astype(np.float64), _BINS, int(np.count_nonzero(z > 0)))


def _fitted(counts: FloatArray, edges: FloatArray, n: int) -> Tail:
    """Fit the tail to counts between `edges`; `counts` is written on."""
    if counts[_BODY:].sum() >= ENOUGH:
        counts[:_BODY] = 0.0
        low = _BODY
    else:
        low = 0
    laws = [(law, scale) for law in range(len(LAWS)) for scale in SCALES]
    fit = np.empty(len(laws))
    for k, (law, scale) in enumerate(laws):
        survival = np.exp(LAWS[law][0](LAWS[law][1], edges / scale))
        mass = np.maximum(survival[:-1] - survival[1:], 1e-300) / max(survival[low] - survival[-1], 1e-300)
        fit[k] = counts @ np.log(mass)
    weight = np.exp(fit - fit.max())
    weight /= weight.sum()
    kept = tuple((law, s, float(w)) for (law, s), w in zip(laws, weight, strict=True) if w > 1e-12)
    return Tail(n=n, weights=kept)


class RunningTail:
    """The same for residuals that come one at a time and are noise, however far out: all count, none is kept."""

    def __init__(self) -> None:
        self._counts = [0.0] * (len(_FAR) - 1)
        self._n = 0
        self._tail: Tail | None = None

    @property
    def count(self) -> int:
        """How many residuals above 0 came so far."""
        return self._n

    def add(self, z: float, weight: float = 1.0) -> None:
        """Take one residual, in scaled MADs."""
        if z > 0.0:
            self._n += 1
            if z < CAP:
                self._counts[int(z / CAP * (len(_BINS) - 1))] += weight
            else:
                self._counts[min(bisect_right(_FAR_EDGES, z), len(_FAR) - 1) - 1] += weight

    def log_probability(self, z: float) -> float:
        """Log of the probability that one upward residual exceeds `z` (> 0).

        Fitting takes 5 ms, so that the last fit serves until a twentieth more has come.
        """
        if self._tail is None or self._n > 1.05 * self._tail.n:
            self._tail = _fitted(np.array(self._counts), _FAR, self._n)
        return float(self._tail.log_probability(np.array([z]))[0])
