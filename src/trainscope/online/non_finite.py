"""non_finite: the loss or gradient norm is NaN or infinite. Always on, whatever detector is chosen."""

from __future__ import annotations

import math

from trainscope.online.base import AnomalyDetector


class NonFinite(AnomalyDetector):
    """Fires at the first value that is not a number or infinite, and once for each such stretch.

    Parameters
    ----------
    healed : int
        Finite values in a row after which the next bad one is news again.
    """

    def __init__(self, healed: int = 20) -> None:
        self._healed = healed
        self._finite = healed

    def update(self, value: float) -> float | None:
        """Return infinity at the start of a non-finite stretch."""
        if math.isfinite(value):
            self._finite += 1
            return None
        news, self._finite = self._finite >= self._healed, 0
        return math.inf if news else None
