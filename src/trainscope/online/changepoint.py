"""changepoint: the loss rose, in one leap or little by little. The default live detector.

Algorithm
    Values become robust scores z against the median of the last 200 (noise: MAD after a straight line was
    taken out). *Shift*: one-sided CUSUM, S = max(0, S + clip(z, -4, 4) - 0.5), alarm at
    12 (1 + phi) / (1 - phi) where phi is the lag-1 autocorrelation; more while the window fills.
    *Spike*: z >= 8, because a clipped CUSUM cannot see one bad step. One event is one alarm: after it
    the detector is silent until the loss is back, or the new level is known.
Assumptions
    The loss falls or stays. A wanted rise (curriculum, new data mix) is flagged once.
False positives
    Per 10,000 steps of flat noise: 0.03 with Gaussian noise (one alarm in 376,000 steps: the median
    deviation came out a fifth too small), 0.08 with AR(0.3), 0.06 with AR(0.6) (360,000 each); 15 with
    Student t of 3 degrees of freedom, whose outliers are spikes by any measure. None in ten runs of a small
    GPT over 1,500 healthy steps, nor in 22 healthy runs of another over 300. Two in 180,000 steps of three
    trainings that had learned their task to a loss of a millionth and exploded ten times (each one found).
Misses
    Shifts in the first 60 values; there only a leap far beyond everything seen so far fires. Rises below 8
    millionths of the level of those values: of a loss that has fallen so far, they are rounding and rare examples.
Reference
    E. S. Page, Biometrika 41, 1954 (CUSUM); threshold inflation for AR(1) noise: Johnson & Bagshaw,
    Technometrics 16, 1974.
"""

from __future__ import annotations

import math

from trainscope.core.change import CLIP, SLACK, Cusum, inflation
from trainscope.online.base import AnomalyDetector
from trainscope.online.level import Level

BACK = 4.0
"""The median of the newest values must be below this score for a spike to count as over."""


class ChangePoint(AnomalyDetector):
    """One-sided CUSUM and spike rule on robust scores; see the module's page.

    Parameters
    ----------
    threshold : float
        Of the CUSUM, in sigmas, for noise without memory. At 12 a step of 2 sigmas is found in 9 steps
        (median; 21 with AR(0.3) noise, 35 with AR(0.6)).
    slack : float
        Sigmas a step may lie above the level without adding up.
    spike : float
        Score at which one step is an anomaly of its own.
    window : int
        Values the level is taken from.
    warmup : int
        Values before shifts are judged.
    cooldown : int
        Values after an alarm before the next is possible.
    """

    def __init__(
        self,
        threshold: float = 12.0,
        slack: float = SLACK,
        spike: float = 8.0,
        window: int = 200,
        warmup: int = 60,
        cooldown: int = 20,
    ) -> None:
        if warmup < 5:
            raise ValueError(f"warmup = {warmup}: must be at least 5, or there is no level to compare with")
        self.warmup = warmup
        self._threshold, self._spike = threshold, spike
        self._cooldown = cooldown
        self._window = max(window, warmup)
        self._level = Level(self._window)
        self._cusum = Cusum(slack)
        self._low, self._high = math.inf, -math.inf
        self._after: list[float] | None = None

    def update(self, value: float) -> float | None:
        """Take the loss of one step; return its score if it is an alarm.

        NaN and infinity are left to `non_finite`.
        """
        if not math.isfinite(value):
            return None
        if self._after is not None:
            self._cool(value)
            return None
        if self._level.count < self.warmup:
            return self._early(value)
        self._level.fit()
        z = self._level.score(value)
        total = self._cusum.add(min(max(z, -CLIP), CLIP))
        if z >= self._spike or total >= self._limit():
            self._cusum.restart()
            self._after = [value]
            return max(z, total)
        self._level.add(value)
        return None

    def _limit(self) -> float:
        """Return the CUSUM's threshold for the noise as it is and as well as it is known.

        A level taken from few values is off by more, and a sum adds that error up.
        """
        return self._threshold * inflation(self._level.phi) * math.sqrt(self._window / self._level.count)

    def _early(self, value: float) -> float | None:
        """Judge a value before the level is known: only a leap far beyond all before it is an anomaly."""
        seen = self._level.count
        spread = self._high - self._low
        if seen >= 5 and value > 2 * abs(self._high) and value - self._high > 5 * max(spread, 1e-12):
            self._level.fit()
            self._after = [value]
            return self._level.score(value)
        self._low, self._high = min(self._low, value), max(self._high, value)
        self._level.add(value)
        return None

    def _cool(self, value: float) -> None:
        """Collect what follows an alarm, then go on from the old level or learn the new one."""
        after = self._after if self._after is not None else []
        after.append(value)
        if len(after) <= self._cooldown:
            return
        newest = sorted(after[-10:])
        if self._level.score(newest[len(newest) // 2]) < BACK:
            kept = [v for v in after if self._level.score(v) < BACK]
        else:
            self._level.clear()
            kept = after[len(after) // 2 :]
            self._low, self._high = min(kept), max(kept)
        for v in kept:
            self._level.add(v)
        self._after = None
