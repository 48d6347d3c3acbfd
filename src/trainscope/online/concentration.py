"""One expert or slot takes nearly everything: what the two share detectors have in common."""

from __future__ import annotations

import math

from trainscope.online.base import AnomalyDetector


class Concentration(AnomalyDetector):
    """Fires when the largest share stays at or above a threshold, once until it has dropped below again.

    Parameters
    ----------
    threshold : float
        Share, 0 to 1.
    run_steps : int
        Steps in a row; single batches are lopsided by chance.
    warmup : int
        Steps before it may fire: routers start lopsided and even out.
    """

    def __init__(self, threshold: float, run_steps: int = 3, warmup: int = 30) -> None:
        if run_steps < 1:
            raise ValueError(f"run_steps = {run_steps}: must be at least 1")
        self.warmup = warmup
        self._threshold, self._run_steps = threshold, run_steps
        self._seen = self._run = 0

    def update(self, value: float) -> float | None:
        """Take the largest share of one step; return it if it is an alarm."""
        self._seen += 1
        if not math.isfinite(value) or value < self._threshold:
            self._run = 0
            return None
        if self._seen > self.warmup:
            self._run += 1
        return value if self._run == self._run_steps else None
