"""Jumps: points and bursts that leave the level at once, and how they ended."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trainscope.detectors.engine.events import Excursion, Limits, Shape
from trainscope.detectors.engine.residuals import START, Residuals, residuals, standing_out

FloatArray = NDArray[np.float64]

PASSES = 12
"""Most rounds of taking events out and looking again."""
WANDER = 0.3
"""Share of what a rise is measured against, up to which a loss may get to by wandering."""
RECENT = 5
"""Points that a point of such a rise must leap over."""
LEAP = 1.0 / 3.0
"""Least part of the rise that one point must be above them."""
GRAVITY = (Shape.SPIKE, Shape.SHIFT, Shape.UNRECOVERED, Shape.DIVERGENCE)
"""What two events that touch are together: the graver of the two."""


def jumps(value: FloatArray, limits: Limits) -> list[Excursion]:
    """Find the jumps of a series of finite values, merged where they touch, in order of their start."""
    return _joined(_peeled(value, limits))


def _peeled(value: FloatArray, limits: Limits) -> list[Excursion]:
    """Peel events off until the rest is quiet: an incident must not hide the next one in its noise."""
    kept = np.arange(len(value))
    found: list[Excursion] = []
    for _ in range(PASSES):
        if len(kept) < START + 4:
            break
        events = _jumps_once(value[kept], limits)
        # What blew up in the end is no measure of what came before: it goes first, and alone.
        events = [e for e in events if e.shape is Shape.DIVERGENCE] or events
        for e in events:
            start, peak, end = (int(kept[i]) for i in (e.start, e.peak, e.end))
            found.append(replace(e, start=start, peak=peak, end=end))
        if not events:
            break
        quiet = np.ones(len(kept), dtype=bool)
        for e in events:
            quiet[e.start : e.end + 1] = False
        kept = kept[quiet]
    return found


def _jumps_once(value: FloatArray, limits: Limits) -> list[Excursion]:
    r = residuals(value)
    points = standing_out(value, r, limits)
    if not len(points):
        return []
    found: list[Excursion] = []
    near = min(10, max(3, len(value) // 20))  # in a short series ten points are several incidents
    for group in np.split(points, np.flatnonzero(np.diff(points) > near) + 1):
        if found and group[0] <= found[-1].end:
            if value[group].max() <= found[-1].top:
                continue
            group = np.arange(found[-1].start, group[-1] + 1)
            found.pop()
        event = _classify(value, r, group)
        if not _wanders(value, r, event):
            found.append(event)
    return found


def _wanders(value: FloatArray, r: Residuals, event: Excursion) -> bool:
    """Tell whether a low rise was climbed in many small steps: a jump leaves its level at once."""
    rise = event.top - event.level
    if event.shape is not Shape.SPIKE or event.start < RECENT or rise >= WANDER * float(r.scale[event.start]):
        return False
    window = np.lib.stride_tricks.sliding_window_view(value[event.start - RECENT : event.peak], RECENT)
    return bool((value[event.start : event.peak + 1] - window.max(axis=1)).max() < LEAP * rise)


def _classify(value: FloatArray, r: Residuals, group: NDArray[np.intp]) -> Excursion:
    start = int(group[0])
    sigma = float(r.sigma[start])
    while start > START and value[start - 1] > r.level[start] + 3 * sigma and r.z[start - 1] > 2.0:
        start -= 1
    level, scale, last = float(r.level[start]), float(r.scale[start]), int(group[-1])
    peak = start + int(np.argmax(value[start : last + 1]))
    event = Excursion(Shape.SPIKE, start, peak, last, level, float(value[peak]), level, float(r.z[peak]))
    back = level + max(3.0 * sigma, 0.03 * scale, 0.15 * (event.top - level))
    calm = np.flatnonzero(forward_median(value[last + 1 :], 5) <= back)
    if len(calm):
        return _recovered(value, replace(event, end=last + int(calm[0])), sigma, scale)
    return _open_ended(value, event, scale)


def _recovered(value: FloatArray, event: Excursion, sigma: float, scale: float) -> Excursion:
    """Classify a jump that came (nearly) back: a spike, unless it stayed up by something that matters."""
    n, end = len(value), event.end
    settling = value[end + 1 : end + 1 + max(40, n // 20)]
    up = event.level + max(2.5 * sigma, 0.08 * scale)
    halves = (settling[: len(settling) // 2], settling[len(settling) // 2 :])
    settled = min(float(np.median(h)) for h in halves) if len(settling) >= 20 else -np.inf
    if settled > event.level + 0.4 * (event.top - event.level) and event.end - event.start < 20:
        return replace(event, shape=Shape.SHIFT, end=_home(value, event, sigma, scale), after=settled)
    if settled > up:
        after = float(np.median(settling))
        return replace(event, shape=_lasting(event, after), end=_home(value, event, sigma, scale), after=after)
    shape = Shape.SPIKE if end - event.start <= max(60, n // 10) else Shape.UNRECOVERED
    return replace(event, shape=shape, after=float(np.median(value[end : end + 5])))


def _home(value: FloatArray, event: Excursion, sigma: float, scale: float) -> int:
    """Return the first point after the event at which the loss is back for 15 points, or the last point."""
    rest = forward_median(value[event.end + 1 :], 15)
    home = np.flatnonzero(rest <= event.level + max(sigma, 0.04 * scale))
    return event.end + 1 + int(home[0]) if len(home) else len(value) - 1


def _open_ended(value: FloatArray, event: Excursion, scale: float) -> Excursion:
    """Classify a jump that was not back when the run ended."""
    rest = value[event.end + 1 :]
    after = float(np.median(value[-max(3, len(rest) // 2) :])) if len(rest) else float(value[-1])
    event, last = replace(event, end=len(value) - 1, after=after), event.end
    if len(rest) < 3:
        lasting = last - event.start >= 2 or event.top - event.level > 3.0 * scale
        return replace(event, shape=Shape.DIVERGENCE if lasting else Shape.SPIKE)
    return replace(event, shape=_lasting(event, after))


def _lasting(event: Excursion, after: float) -> Shape:
    """Tell a spike that left the loss higher from a shift that merely began with a jump."""
    return Shape.UNRECOVERED if event.top - event.level >= 3.0 * (after - event.level) else Shape.SHIFT


def forward_median(value: FloatArray, width: int) -> FloatArray:
    """Return the median of each point and the ones after it, `width` in all (fewer at the end)."""
    if not len(value):
        return value
    padded = np.concatenate((value, np.repeat(value[-1], width - 1)))
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(padded, width), axis=1))


def _joined(events: list[Excursion]) -> list[Excursion]:
    """Merge jumps that touch: the slow way back of a spike is not a second one."""
    joined: list[Excursion] = []
    for event in sorted(events, key=lambda e: e.start):
        last = joined[-1] if joined else None
        if last is None or event.start > last.end + 5:
            joined.append(event)
            continue
        higher = max(last, event, key=lambda e: e.top)
        end = max(last.end, event.end)
        shape = max(last.shape, event.shape, key=GRAVITY.index)
        joined[-1] = replace(higher, shape=shape, start=last.start, end=end, level=last.level, after=event.after)
    return joined
