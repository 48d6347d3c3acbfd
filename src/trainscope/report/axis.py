"""Axes that a person can read: round ticks, honest limits, and a scale that shows the shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trainscope.core.run import FloatArray

CAP_RATIO = 1.5
"""The axis is capped where the greatest value exceeds this many times the 99th percentile."""
LOG_RATIO = 50.0
"""A log scale helps where the 99th percentile is this many times the 1st."""
BASE_SHARE = 0.25
"""The axis of a non-negative metric starts at 0, unless the data use less than this share of it."""
_HUGE, _TINY = 1e300, 1e-290
"""Beyond these, differences and powers of ten leave the range of floats."""
_HEADROOM = 0.05
"""Share of the range left free beyond the data."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A mapping from values to the share of a length, with its ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]
    labels: tuple[str, ...]
    log: bool = False

    def share(self, values: ArrayLike) -> FloatArray:
        """Return where `values` lie, 0 at `low` and 1 at `high`; what lies outside is clamped."""
        array = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)
        if self.log:
            bottom, top = math.log(self.low), math.log(self.high)
            return np.asarray((np.log(array) - bottom) / (top - bottom), dtype=np.float64)
        # Halves, because the difference of two huge limits is infinite.
        return np.asarray((array / 2 - self.low / 2) / (self.high / 2 - self.low / 2), dtype=np.float64)


def nice_number(value: float, *, nearest: bool) -> float:
    """Return a power of ten times 1, 2 or 5: the nearest one, or the least that is not below `value`.

    Heckbert, "Nice numbers for graph labels", Graphics Gems, 1990.
    """
    exponent = math.floor(math.log10(value))
    scale = 10.0**exponent
    fraction = value / scale
    bounds = (1.5, 3.0, 7.0) if nearest else (1.0 + 1e-9, 2.0 + 1e-9, 5.0 + 1e-9)
    for bound, nice in zip(bounds, (1.0, 2.0, 5.0), strict=True):
        if fraction < bound:
            return nice * scale
    return 10.0 * scale


def nice_ticks(low: float, high: float, count: int) -> tuple[float, ...]:
    """Return the round values from `low` to `high`, about `count` of them."""
    step = nice_number((high - low) / max(count - 1, 1), nearest=True)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if first == last:
        # One tick gives no scale.
        step /= 2
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(i * step for i in range(first, last + 1))


def step_axis(first: int, last: int, count: int) -> Axis:
    """Return the axis of steps: the limits are the data's own, the ticks are whole numbers between them."""
    if first == last:
        return Axis(first - 0.5, last + 0.5, (float(first),), tick_labels((float(first),), 1.0))
    ticks = [t for t in nice_ticks(first, last, count) if t == int(t)]
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    return Axis(first, last, tuple(ticks), tick_labels(ticks, step))


def value_axis(values: FloatArray, count: int = 5, *, allow_log: bool = True, allow_cap: bool = True) -> Axis:
    """Return the axis for a metric.

    Parameters
    ----------
    values : (n,) float64 array
        May hold NaN and infinities, which have no place on an axis.
    count : int
        About how many ticks.
    allow_log : bool
        Whether a log scale may be chosen, where all values are positive and span decades.
    allow_cap : bool
        Whether outliers may be left beyond a linear axis.

    Returns
    -------
    Axis
        Its upper end is the greatest value, unless a few outliers would flatten the rest
        (``CAP_RATIO``): then they lie outside and the chart must mark them at the edge.
    """
    finite = np.clip(values[np.isfinite(values)], -_HUGE, _HUGE)
    if not len(finite):
        return Axis(0.0, 1.0, (), ())
    low, high = float(finite.min()), float(finite.max())
    p01, p99 = (float(p) for p in np.percentile(finite, [1, 99]))
    if allow_log and low > _TINY and p99 >= LOG_RATIO * p01:
        return _log_axis(low, high, p01, p99)
    if low >= 0:
        if allow_cap and p99 > 0 and high > CAP_RATIO * p99:
            high = float(finite[finite <= CAP_RATIO * p99].max())
        if low < high * (1 - BASE_SHARE):
            low = 0.0
    elif allow_cap:
        # Without a natural zero the spread is the yardstick: noise alone stays well within.
        spread = p99 - p01
        inside = finite[(finite <= p99 + CAP_RATIO * spread) & (finite >= p01 - CAP_RATIO * spread)]
        if spread > 0:
            low, high = float(inside.min()), float(inside.max())
    return _linear(low, high, count, floor=low >= 0)


def pooled(columns: Sequence[FloatArray]) -> FloatArray:
    """Return the finite values of some series that share an axis, those of a short one as often as of the longest.

    Else all that a series has few points of would count as outliers of the other.
    """
    some = [finite for column in columns if len(finite := column[np.isfinite(column)])]
    most = max(map(len, some), default=0)
    return np.concatenate([np.resize(column, most) for column in some]) if some else np.array([], dtype=np.float64)


def _linear(low: float, high: float, count: int, *, floor: bool) -> Axis:
    size = max(abs(low), abs(high))
    if high - low <= 1e-12 * size or high - low < _TINY:
        # A constant: room around it, and still never below zero for what cannot be.
        pad = 0.1 * size if size > _TINY else 1.0
        low, high = max(low - pad, 0.0) if floor else low - pad, high + pad
    else:
        room = _HEADROOM * (high - low)
        low, high = max(low - room, 0.0) if floor else low - room, high + room
    ticks = nice_ticks(low, high, count)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else high - low
    return Axis(low, high, ticks, tick_labels(ticks, step))


def _log_axis(low: float, high: float, p01: float, p99: float) -> Axis:
    # On a log scale only what lies decades away flattens the rest.
    high = p99 * 10 if high > p99 * 1000 else high
    low = p01 / 10 if low < p01 / 1000 else low
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    last = max(last, first + 1)
    decades = last - first
    if decades <= 2:
        grid = [m * 10.0**e for e in range(first, last + 1) for m in (1, 2, 5)]
        below = max(t for t in grid if t <= low * (1 + 1e-9))
        above = min((t for t in grid if t >= high * (1 - 1e-9)), default=grid[-1])
        ticks = tuple(t for t in grid if below <= t <= above)
    else:
        stride = math.ceil(decades / 5)
        last = first + math.ceil(decades / stride) * stride
        ticks = tuple(10.0**e for e in range(first, last + 1, stride))
    return Axis(ticks[0], ticks[-1], ticks, tuple(tick_label(t, t, t) for t in ticks), log=True)


def tick_labels(ticks: Sequence[float], step: float) -> tuple[str, ...]:
    """Return evenly spaced ticks as people write them, all in one unit: ``9.9k``, ``10.0k``."""
    size = max((abs(t) for t in ticks), default=0.0)
    return tuple(tick_label(t, step, size) for t in ticks)


def tick_label(value: float, step: float, size: float) -> str:
    """Return one tick: ``0.25``, ``12k``, ``1.5M``, ``3e-4``.

    Parameters
    ----------
    value : float
    step : float
        Distance to the next tick: as many digits as tell the two apart.
    size : float
        Greatest absolute value on the axis, which decides the unit.
    """
    if value == 0:
        return "0"
    fine = math.floor(math.log10(step) + 1e-9)
    # Every second of 5 apart is 2.5 apart, which takes a digit more.
    fine -= not math.isclose(step / 10.0**fine, round(step / 10.0**fine), rel_tol=1e-6)
    if size < 1e15 and (size >= 1e4 or step >= 1000):
        power, suffix = next(p for p in ((12, "T"), (9, "G"), (6, "M"), (3, "k")) if size >= 10.0 ** p[0])
        return f"{value / 10.0**power:.{max(power - fine, 0)}f}{suffix}"
    if size >= 1e15 or fine < -3:
        digits = max(math.floor(math.log10(abs(value)) + 1e-9) - fine, 0)
        mantissa, exponent = f"{value:.{min(digits, 15)}e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{value:.{max(-fine, 0)}f}"
