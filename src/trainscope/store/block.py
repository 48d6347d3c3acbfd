"""What the recorder hands to the store for one step: plain arrays, no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class LayerBlock:
    """The statistics of every layer at one step, one array a statistic.

    Hand over the same `names` object every step where the layers are the same: comparing is then free.

    Attributes
    ----------
    names : tuple of str
        The n layers (parameters or modules) in model order, each once.
    columns : mapping of str to (n,) float array
        Statistic to its values in the order of `names`. NaN and infinity are data. A statistic that
        was not sampled at this step is left out and reads back as null. See
        :data:`trainscope.store.schema.LAYER_COLUMNS` for the known names; others are kept as they are.
    valid : mapping of str to (n,) bool array
        For a statistic that only some layers have (an activation of a bias, the gradient of a frozen
        weight): False reads back as null. A statistic that is not in here is there for every layer.
    histograms : (counts, edges), optional
        ``counts`` (n, bins) and ``edges`` (n, bins + 1) of the weights at this step. The edges of a layer
        must be the same at every step (chosen once, from its first histogram, with room on both sides),
        and the outer bins also count what lies beyond them: only then does the divergence between two
        steps mean something. A row of NaN edges stands for a layer without a histogram.
    """

    names: tuple[str, ...]
    columns: Mapping[str, FloatArray]
    valid: Mapping[str, BoolArray] | None = None
    histograms: tuple[FloatArray, FloatArray] | None = None

    def __post_init__(self) -> None:
        n = len(self.names)
        for kind, arrays in (("column", self.columns), ("valid", self.valid or {})):
            for name, array in arrays.items():
                if np.shape(array) != (n,):
                    raise ValueError(f"{kind} {name!r}: {n} layers but shape {np.shape(array)}")
        if self.histograms is not None:
            counts, edges = self.histograms
            if counts.ndim != 2 or len(counts) != n or edges.shape != (n, counts.shape[1] + 1):
                raise ValueError(f"histograms: {n} layers but counts {counts.shape} and edges {edges.shape}")
