"""changepoint: the loss rose, in one leap or little by little, or grew noisy. The default live detector.

Algorithm
    Values become robust scores z against the median of the last 200 (noise: MAD after a straight line was
    taken out). *Shift*: one-sided CUSUM, S = max(0, S + clip(z, -4, 4) - m - 0.5), alarm at
    12 v (1 + phi) / (1 - phi), where phi is the lag-1 autocorrelation, m and v mean and variance of the clipped scores,
    0 and 1 of Gaussian noise; more while the window fills. *Spike*: z >= 6, because a clipped CUSUM cannot see one bad
    step, and rarer than `false_alarms` in 10,000 steps under the tail of all the run's noise so far; that times 25
    where no step was higher than tail index 3 allows in 1 run of 100, times 40 where it is 8 times as high as any
    before, 5 where the loss doubles: heavy-tailed noise has steps of 20 sigmas that mean nothing. *Burst*: 3 or 5
    steps in a row that are together as rare. *Noise*: the median change from step to step in the last 25, 50 or 100
    is 2.5, 1.9 or 1.6 times the largest of all such windows before, and 1.5 % of the level; the recorder tells it, as
    no spike. One event is one alarm: after it the detector is silent until the loss is back, or the new level known.
Assumptions
    The loss falls or stays. A wanted rise (curriculum, new data mix) is flagged once.
False positives
    In 2,060,000 healthy steps of a falling loss with noise of t(3) and AR(0.3), 0.5 to 4.5 % of it, 7 spikes: 0.03 in
    10,000 (95 %: 0.01 to 0.07), each a step that stood out. In 400,000 of each of twelve other noises at most 3 alarms;
    of tail index 3 a step leaps at last. None in 84 real healthy trainings (25,200 steps; docs/evidence.md).
Misses
    Shifts in the first 60 values; there only a leap far beyond everything seen so far fires. Rises below 8
    millionths of the level of those values: of a loss that has fallen so far, they are rounding and rare examples.
    A single step where the tail is known from few values or is heavy: with Gaussian noise, of 30 steps 10 sigmas high
    none is found at step 120, 2 at 300, 15 at 600 and 27 at 1,000, of those 20 sigmas high 3, 20, 28 and 30; with
    Laplace noise 6 of the latter at step 1,000, with t(3) and AR(0.3) none.
Reference
    E. S. Page, Biometrika 41, 1954 (CUSUM); threshold inflation for AR(1) noise: Johnson & Bagshaw,
    Technometrics 16, 1974.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Literal

from trainscope.core.change import CLIP, SLACK, Cusum, inflation
from trainscope.core.tails import CAP, MANY, SHORT_TAILED, RunningTail
from trainscope.online.base import AnomalyDetector
from trainscope.online.level import Level
from trainscope.online.noise import GrownNoise

Rule = Literal["leap", "spike", "burst", "shift", "noise"]
BACK = 4.0
"""The median of the newest values must be below this score for a spike to count as over."""
ALONE = 8.0
"""A step this many times as far off as any before: of noise with a tail index of 3, one step in 1,000 n after n."""
ALONE_BUDGET = 40.0
"""Such a step may be as many times as likely under the tail, which is known from few values."""
AGAIN = 2.0
"""What is less than twice as far off as another step was has happened before, whatever the tail says."""
LARGE, LARGE_ALONE = 1.0, 5.0
"""A rise of this share of the level needs to stand out less: a loss that doubles is news."""
FEW, SHORT_BUDGET = 100, 25.0
"""From so many steps on noise may be short-tailed: its highest is then as low as that of tail index 3 in 1 run of 100.
Such noise may have so many times the false alarms, each run in 100 of the others too."""
BURSTS, BURST_LEAST, BURST_SHARE, BURST_BUDGET = (3, 5), 3.0, 0.8, 20.0
"""Steps in a row, the least of each, how much each adds to the rarity (neighbours are not quite independent), and
times the false alarms of one step: none was seen in 4,000,000 steps with tail index 3."""
UPWARD = 0.5
"""Share of healthy scores above 0."""


class ChangePoint(AnomalyDetector):
    """One-sided CUSUM and spike rule on robust scores; see the module's page.

    Parameters
    ----------
    threshold : float
        Of the CUSUM, in sigmas, for noise without memory. At 12 a step of 2 sigmas is found in 10 steps
        (median; 23 with AR(0.3) noise, 40 with AR(0.6), 26 with t(3) and AR(0.3)).
    slack : float
        Sigmas a step may lie above the level without adding up.
    spike : float
        Score from which on one step may be an anomaly of its own.
    false_alarms : float
        Expected number of healthy steps in 10,000 whose score is as high as that of an anomaly.
    window : int
        Values the level is taken from.
    warmup : int
        Values before shifts are judged.
    cooldown : int
        Values after an alarm before the next is possible.
    noise_is_spike : bool
        Whether grown noise counts as a spike in every respect; a recorder else records and tells it, and goes on.

    Attributes
    ----------
    rule : str
        What the last alarm was: "leap" (before the level is known), "spike", "burst", "shift" or "noise".
    """

    def __init__(
        self,
        threshold: float = 12.0,
        slack: float = SLACK,
        spike: float = 6.0,
        false_alarms: float = 0.001,
        window: int = 200,
        warmup: int = 60,
        cooldown: int = 20,
        noise_is_spike: bool = False,
    ) -> None:
        if warmup < 5:
            raise ValueError(f"warmup = {warmup}: must be at least 5, or there is no level to compare with")
        self.warmup = warmup
        self._threshold, self._spike = threshold, spike
        self._rare = math.log(max(false_alarms, 1e-300) / 10_000 / UPWARD)
        self._tail = RunningTail()
        self._known = False
        self._top = 0.0
        self._recent: deque[float] = deque(maxlen=max(BURSTS))
        self._last = 0.0
        self._cooldown = cooldown
        self._noise_is_spike = noise_is_spike
        self.rule: Rule | None = None
        self._window = max(window, warmup)
        self._level = Level(self._window)
        self._noise = GrownNoise()
        self._cusum = Cusum(slack)
        self._low, self._high = math.inf, -math.inf
        self._after: list[float] | None = None

    def update(self, value: float) -> float | None:
        """Take the loss of one step; return its score if it is an alarm, of grown noise how many times it has grown.

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
        if not self._known:
            self._known = True
            for change in self._level.changes().tolist():
                self._note(change)
        z = self._level.score(value)
        total = self._cusum.add(min(max(z, -CLIP), CLIP) - max(self._level.lean, 0.0))
        rule = self._broken(value, z, total)
        if rule is not None:
            self._cusum.restart()
            self._after, self.rule = [value], rule
            return max(z, total, self._height(value) if rule == "burst" else 0.0)
        self._note(self._level.change(value))
        self._level.add(value)
        noisier = self._noise.add(value, self._level.median)
        if noisier is not None:
            self._after, self.rule = [value], "noise"
        return noisier

    @property
    def noise_grew(self) -> bool:
        """Whether the last alarm was of grown noise that is no spike."""
        return self.rule == "noise" and not self._noise_is_spike

    def _broken(self, value: float, z: float, total: float) -> Rule | None:
        if z >= self._spike and self._is_rare(value):
            return "spike"
        if self._is_burst(value):
            return "burst"
        return "shift" if total >= self._limit() else None

    def _note(self, change: float) -> None:
        """Keep a change that was no alarm; a loss may fall by more than any noise, so far out rises count for both."""
        if change >= CAP:
            self._tail.add(change, 2.0)
        elif change > -CAP:
            self._tail.add(abs(change))
        self._top = max(self._top, change)

    def _height(self, value: float) -> float:
        """Return how far a value lies above the level, in units of the noise from step to step."""
        return (value - self._level.median) * math.sqrt(1.0 - self._level.memory) / self._level.noise

    def _is_burst(self, value: float) -> bool:
        """Tell whether the last 3 or 5 steps are together rarer than one healthy step, what one hands on taken out."""
        height = self._height(value)
        self._recent.append(height - self._level.memory * max(self._last, 0.0))
        self._last = height
        if self._recent[-1] < BURST_LEAST:
            return False
        for length in BURSTS:
            lowest = min(list(self._recent)[-length:])
            if len(self._recent) >= length and lowest >= BURST_LEAST:
                together = BURST_SHARE * length * self._tail.log_probability(lowest)
                if together < self._rare + math.log(BURST_BUDGET):
                    self._recent.clear()
                    return True
        return False

    def _is_rare(self, value: float) -> bool:
        """Tell whether hardly any healthy step of this very run would lie as far above the level.

        A tail that is known from few steps may be any, so that what stands alone counts too.
        """
        height = self._height(value)
        alone = LARGE_ALONE if value - self._level.median >= LARGE * abs(self._level.median) else ALONE
        times = height / max(self._top, 2.0)
        # The highest of n residuals grows like n ** (1 / 3) where the tail index is 3.
        short = self._tail.count >= FEW and self._top <= SHORT_TAILED * min(
            1.0, (self._tail.count / MANY) ** (1.0 / 3.0)
        )
        if times < AGAIN:
            return False
        budget = max(SHORT_BUDGET if short else 1.0, ALONE_BUDGET if times >= alone else 1.0)
        return self._tail.log_probability(height) < self._rare + math.log(budget)

    def _limit(self) -> float:
        """Return the CUSUM's threshold for the noise as it is, higher while a level is known from few values."""
        noise = max(self._level.spread, 1.0) * inflation(self._level.phi)
        return self._threshold * noise * math.sqrt(self._window / self._level.count)

    def _early(self, value: float) -> float | None:
        """Judge a value before the level is known: only a leap far beyond all before it is an anomaly."""
        seen = self._level.count
        if seen >= 5 and value > 2 * abs(self._high) and value - self._high > 5 * max(self._high - self._low, 1e-12):
            self._level.fit()
            self._after, self.rule = [value], "leap"
            return self._level.score(value)
        self._low, self._high = min(self._low, value), max(self._high, value)
        self._level.add(value)
        self._noise.add(value, value)
        return None

    def _is_back(self, value: float) -> bool:
        # The bend of an early curve widens sigma, and not the noise from step to step.
        return self._level.score(value) < BACK and self._height(value) < BACK

    def _cool(self, value: float) -> None:
        """Collect what follows an alarm, then go on from the old level or learn the new one."""
        after = self._after if self._after is not None else []
        after.append(value)
        if len(after) <= self._cooldown:
            return
        newest = sorted(after[-10:])
        if self._is_back(newest[len(newest) // 2]):
            kept = [v for v in after if self._is_back(v)]
        else:
            self._level.clear()
            self._noise = GrownNoise()
            kept = after[len(after) // 2 :]
            self._low, self._high = min(kept), max(kept)
        for v in kept:
            self._level.add(v)
            self._noise.add(v, self._level.median)
        self._after = None
