"""non_finite: the loss or gradient norm is NaN or infinite. Always on, whatever detector is chosen."""

from __future__ import annotations

import math

from trainscope.online.base import AnomalyDetector


class NonFinite(AnomalyDetector):
    """Fires at the first value that is not a number or infinite, and once for each such stretch.

    A finite value is never flagged. What is flagged and harmless: a NaN that a script hands over for a step that it
    leaves out itself, and an overflow under a loss scale that the recorder is not told of. None of 84 healthy trainings
    (25,200 steps) was flagged.

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
