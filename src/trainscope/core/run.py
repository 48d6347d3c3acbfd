"""The one shape every log becomes: a Run that holds named Series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Series:
    """One metric over steps. Validated once, here; everything after may trust it.

    Attributes
    ----------
    name : str
        Canonical name, such as ``"train/loss"``; see :mod:`trainscope.core.metrics`.
    step : (n,) int64 array
        Optimizer steps (or what ``Run.x_axis`` says), strictly increasing.
    value : (n,) float64 array
        In the metric's own unit. NaN and infinity are data, not errors.
    time : (n,) float64 array, optional
        Unix seconds of each point.

    Raises
    ------
    ValueError
        If the shapes differ or the steps do not increase.
    """

    name: str
    step: IntArray
    value: FloatArray
    time: FloatArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", np.ascontiguousarray(self.step, dtype=np.int64))
        object.__setattr__(self, "value", np.ascontiguousarray(self.value, dtype=np.float64))
        if self.step.ndim != 1 or self.step.shape != self.value.shape:
            raise ValueError(f"{self.name}: step and value must be 1-d and equally long")
        if self.time is not None and self.time.shape != self.step.shape:
            raise ValueError(f"{self.name}: time must be as long as step")
        if np.any(self.step[1:] <= self.step[:-1]):
            raise ValueError(f"{self.name}: steps must be strictly increasing")

    def __len__(self) -> int:
        return len(self.step)

    def finite(self) -> Series:
        """Return the points whose value is neither NaN nor infinite (itself, if all are)."""
        keep = np.isfinite(self.value)
        if keep.all():
            return self
        time = self.time[keep] if self.time is not None else None
        return Series(self.name, self.step[keep], self.value[keep], time)


@dataclass(frozen=True, slots=True)
class Note:
    """What a reader dropped, merged, assumed or found odd, in words fit for a report."""

    kind: str
    """Stable snake_case word, such as ``rewind``, ``duplicate_step``, ``bad_cell``, ``bad_step``."""
    message: str
    """One sentence without a full stop, with the numbers in it."""
    count: int = 1
    """How many rows, cells or points it is about."""
    start_step: int | None = None
    end_step: int | None = None


class LayerTable(Protocol):
    """Per-layer statistics of a recorded run, read when asked for."""

    def layers(self) -> tuple[str, ...]:
        """Return the recorded parameter or module names, in model order."""
        ...

    def metrics(self) -> tuple[str, ...]:
        """Return the recorded statistics, such as ``grad_l2_norm``."""
        ...

    def series(self, layer: str, metric: str) -> Series:
        """Return one statistic of one layer over steps (empty where never recorded)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Histograms:
    """Counts of one parameter's weights at some steps."""

    step: IntArray
    """(k,) steps, increasing."""
    counts: FloatArray
    """(k, bins) weights in each bin; the two outer bins also count what lies beyond them."""
    edges: FloatArray
    """(k, bins + 1) increasing edges; the same at every step where one recorder chose them once."""


@runtime_checkable
class HistogramTable(LayerTable, Protocol):
    """A layer table that has histograms of the weights too."""

    def histograms(self, layer: str) -> Histograms:
        """Return the histograms of one layer (none where never recorded)."""
        ...


class ShareTable(Protocol):
    """Routing or addressing shares of a recorded run, read when asked for."""

    def blocks(self) -> tuple[str, ...]:
        """Return the recorded router and addressor names."""
        ...

    def shares(self, block: str) -> tuple[IntArray, FloatArray]:
        """Return steps (n,) and shares (n, experts or slots); each row sums to 1."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A training run, whatever wrote it down."""

    name: str
    """What a person calls it: the file's stem, the run's folder, the W&B run name."""
    source: str
    """The path as the user gave it, ``-`` for standard input."""
    format: str
    """``NAME`` of the reader that read it."""
    series: Mapping[str, Series]
    """Canonical metric name to its points."""
    config: Mapping[str, Scalar] = field(default_factory=lambda: MappingProxyType({}))
    """Hyperparameters where the source has them, flattened with dots."""
    notes: tuple[Note, ...] = ()
    """Nothing is dropped without a note."""
    x_axis: str = "step"
    """What ``Series.step`` counts: ``step``, ``epoch`` or ``row``."""
    layers: LayerTable | None = None
    shares: ShareTable | None = None

    def get(self, name: str) -> Series | None:
        """Return the series called `name`, or None if the run has none with at least one point."""
        found = self.series.get(name)
        return found if found is not None and len(found) else None

    @property
    def first_step(self) -> int | None:
        """Smallest step of any series, None for an empty run."""
        return min((int(s.step[0]) for s in self.series.values() if len(s)), default=None)

    @property
    def last_step(self) -> int | None:
        """Largest step of any series, None for an empty run."""
        return max((int(s.step[-1]) for s in self.series.values() if len(s)), default=None)
