"""In which layer did a norm of the whole model rise? Squared norms add up, so each layer has an exact part in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.run import LayerTable

LEVEL = 25
"""Steps before the rise that say what is usual."""
FEWEST = 5
MOST = 0.5
"""Least part of the rise that makes one layer the place of it."""


@dataclass(frozen=True, slots=True)
class Place:
    """The layer that a rise is in."""

    layer: str
    part: float
    """Of the rise of the squared norm."""
    ratio: float
    """Of the layer's norm to what was usual there."""

    @property
    def said(self) -> str:
        """A sentence about it."""
        return f"{100 * self.part:.0f} % of the rise is in {self.layer}, which rose {self.ratio:.3g}-fold."


def place(table: LayerTable | None, metric: str, start: int, peak: int) -> Place | None:
    """Return the layer that has most of a rise, None where no layer has half of it or layers were not recorded then.

    Parameters
    ----------
    table : LayerTable or None
    metric : str
        ``grad_l2_norm`` or ``update_l2_norm``.
    start, peak : int
        Steps: the rise begins at the first and is highest at the second.
    """
    if table is None or metric not in table.metrics():
        return None
    rises: dict[str, tuple[float, float]] = {}
    for layer in table.layers():
        series = table.series(layer, metric)
        begin, top = (int(i) for i in np.searchsorted(series.step, (start, peak)))
        if top >= len(series) or series.step[top] != peak or begin < FEWEST:
            continue
        before = series.value[max(0, begin - LEVEL) : begin]
        usual = float(np.median(before[np.isfinite(before)])) if np.isfinite(before).any() else 0.0
        value = float(series.value[top])
        if np.isfinite(value):
            rises[layer] = (value**2 - usual**2, value / usual if usual > 0 else np.inf)
    total = sum(rise for rise, _ in rises.values() if rise > 0)
    if not total > 0:
        return None
    layer = max(rises, key=lambda name: rises[name][0])
    rise, ratio = rises[layer]
    return Place(layer, rise / total, ratio) if rise >= MOST * total and np.isfinite(ratio) else None
