"""percentile: the loss stays above nearly everything of the last values."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from trainscope.online.base import AnomalyDetector
from trainscope.online.level import RELATIVE_FLOOR


class Percentile(AnomalyDetector):
    """Fires when several values in a row exceed a percentile of those before; no shape of noise is assumed.

    Noise with memory alarms: in 100,000 healthy steps each of a falling loss, 1.0 to 2.4 times in 10,000 with AR(0.6),
    at most 0.2 with AR(0.3), never with none, whatever the tail (docs/evidence.md, "Healthy training, live"); none in
    25,200 steps of 84 real healthy trainings.

    Parameters
    ----------
    upper : float
        Percentile that must be exceeded.
    window, warmup : int
        Values it is taken from, at most and at least; the value itself is not among them.
    run_steps : int
        Values in a row. One alone exceeds the 99th percentile at every hundredth step of a healthy run.
    cooldown : int
        Values after an alarm before the next is possible.
    """

    def __init__(
        self,
        upper: float = 99.0,
        window: int = 200,
        warmup: int = 30,
        run_steps: int = 3,
        cooldown: int = 20,
    ) -> None:
        if warmup < 2:
            raise ValueError(f"warmup = {warmup}: must be at least 2")
        if upper > 100.0:
            raise ValueError(f"upper = {upper}: must not exceed 100")
        if run_steps < 1:
            raise ValueError(f"run_steps = {run_steps}: must be at least 1")
        self.warmup = warmup
        self._upper, self._run_steps, self._cooldown = upper, run_steps, cooldown
        self._values: deque[float] = deque(maxlen=max(window, warmup))
        self._run = self._silent = 0

    def update(self, value: float) -> float | None:
        """Take the loss of one step; return how far above, in widths of the upper half, if it is an alarm."""
        if not math.isfinite(value):
            return None
        score = self._score(value) if len(self._values) >= self.warmup else 0.0
        self._run = self._run + 1 if score > 0 else 0
        self._values.append(value)
        if self._silent > 0:
            self._silent -= 1
            return None
        if self._run < self._run_steps:
            return None
        self._run, self._silent = 0, self._cooldown
        return score

    def _score(self, value: float) -> float:
        past = np.fromiter(self._values, dtype=float, count=len(self._values))
        middle, edge = (float(v) for v in np.percentile(past, (50.0, self._upper)))
        width = max(edge - middle, RELATIVE_FLOOR * abs(middle), 1e-12)
        return (value - middle) / width - 1.0
