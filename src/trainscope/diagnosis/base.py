"""What a comparer is: a record of data and one pure function from two runs to what is different."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

import numpy as np

from trainscope.core.finding import Finding
from trainscope.core.run import FloatArray, IntArray, Run, Series
from trainscope.detectors.base import Skipped

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Pairing:
    """How far the same step of two runs means the same thing."""

    exact: bool
    """Same weights, batches and random numbers: differences at one step are the change's own."""
    reasons: tuple[str, ...] = ()
    """Why not, each in a few words."""


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A run and what it is compared with."""

    run: Run
    base: Run
    """The baseline run that is nearest: the same seed and data where there is one."""
    pairing: Pairing
    baselines: tuple[Run, ...]
    """All baseline runs, `base` among them."""

    def both(self, name: str) -> Aligned | None:
        """Return a metric of both runs at the steps they share, None where either lacks it."""
        mine, theirs = self.run.get(name), self.base.get(name)
        return None if mine is None or theirs is None else align(mine, theirs)


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """One metric of two runs at the steps that both have."""

    step: IntArray
    run: FloatArray
    base: FloatArray

    def __len__(self) -> int:
        return len(self.step)

    def tail(self, share: float = 1 / 3) -> Aligned:
        """Return the last `share` of the points, at least one."""
        keep = slice(len(self) - max(1, int(len(self) * share)), None)
        return Aligned(self.step[keep], self.run[keep], self.base[keep])

    def finite(self) -> Aligned:
        """Return the points that are finite in both runs."""
        keep = np.isfinite(self.run) & np.isfinite(self.base)
        return Aligned(self.step[keep], self.run[keep], self.base[keep])


@dataclass(frozen=True, slots=True)
class Comparison:
    """One line of what was compared, whether or not it is a finding."""

    metric: str
    verdict: str
    """``same``, ``within margin``, ``worse``, ``better``, ``changed``, or why it is neither or could not be judged."""
    step: int | None = None
    value: float | None = None
    band: tuple[float, float] | None = None
    p_value: float | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """What one comparer says."""

    findings: tuple[Finding, ...] = ()
    comparisons: tuple[Comparison, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparer(Generic[P]):
    """One question about a run and its baseline, and the function that answers it."""

    id: str
    """Permanent, snake_case, the module's own name; never reused, nor shared with a detector."""
    title: str
    needs: tuple[str, ...]
    params: P
    compare: Callable[[Pair, P], Compared | Skipped]

    @property
    def page(self) -> str:
        """The whole documentation: the docstring of the module that defines `compare`."""
        return sys.modules[self.compare.__module__].__doc__ or ""

    def parameters(self) -> dict[str, Any]:
        """Return parameter names and default values."""
        return {f.name: getattr(self.params, f.name) for f in fields(self.params)}  # type: ignore[arg-type]


def align(run: Series, base: Series) -> Aligned:
    """Return the points of both series at their common steps."""
    step, mine, theirs = np.intersect1d(run.step, base.step, assume_unique=True, return_indices=True)
    return Aligned(step, run.value[mine], base.value[theirs])
