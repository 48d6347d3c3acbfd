"""Charts as geometry: where lines, bands, ticks and marks go, in pixels. A template draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainscope.core.run import Series
from trainscope.report.axis import pooled, step_axis, value_axis
from trainscope.report.chart_text import describe, hints
from trainscope.report.frame import Frame, Outlier, band_path, dots, line_path, outliers
from trainscope.report.reduction import reduce_series

LEFT, RIGHT, TOP, BOTTOM = 44.0, 12.0, 26.0, 22.0
"""Room around the plot; the same in every chart, so that stacked charts line up."""
BADGE = 18.0
"""Width of a finding's number above the plot."""
BROAD = 0.5
"""Share of the plot above which a range is drawn as a bar at its top only."""
MIN_SHADE = 3.0
"""A range of a single step is still this many pixels wide."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A finding's range, to be shaded."""

    start: int
    end: int
    severity: str
    badge: str
    """The finding's number, at the top of the range; empty for none."""
    title: str


@dataclass(frozen=True, slots=True)
class Shade:
    """A mark in pixels."""

    x: float
    width: float
    is_broad: bool
    """Covers so much of the plot that filling it would say nothing."""
    badge_x: float
    mark: Mark


@dataclass(frozen=True, slots=True)
class Line:
    """One series as SVG path data."""

    name: str
    style: str
    """Style class, such as ``loss``."""
    path: str
    band: str
    dots: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled place on an axis, in pixels."""

    at: float
    text: str
    anchor: str = "middle"


@dataclass(frozen=True, slots=True)
class Chart:
    """All that a template needs to draw one chart; lengths in pixels."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[Line, ...]
    shades: tuple[Shade, ...]
    outliers: tuple[Outlier, ...]
    rug: tuple[float, ...]
    """Where values are NaN or infinite."""
    alt: str
    """The chart in words and numbers."""
    hints: tuple[str, ...]
    """What the eye should know: log scale, values beyond the axis, values that are no number."""


def draw(
    series: Sequence[tuple[Series, str]],
    marks: Sequence[Mark] = (),
    *,
    width: float,
    height: float,
    x_name: str = "step",
    window: tuple[int, int] | None = None,
    allow_log: bool = True,
    allow_cap: bool = True,
) -> Chart:
    """Lay out one chart.

    Parameters
    ----------
    series : sequence of (Series, style class)
        Drawn on one axis, the last on top; the first is the one that the words are about. None is empty.
    marks : sequence of Mark
        Ranges to shade, on the same steps.
    width, height : float
        Of the whole drawing, in pixels.
    x_name : str
        What a step is called in words.
    window : (int, int), optional
        First and last step to show; all of them if not given.
    allow_log : bool
        Whether a log scale may be used where it helps.
    allow_cap : bool
        Whether outliers may be drawn at the edge, so that they do not flatten the rest.
    """
    first, last = window or (min(int(s.step[0]) for s, _ in series), max(int(s.step[-1]) for s, _ in series))
    shown = [(_within(s, first, last), style) for s, style in series]
    frame = Frame(
        left=LEFT,
        right=width - RIGHT,
        top=TOP,
        bottom=height - BOTTOM,
        x_axis=step_axis(first, last, max(round(width / 80), 3)),
        y_axis=value_axis(
            pooled([s.value for s, _ in shown]),
            max(round((height - TOP - BOTTOM) / 34), 4),
            allow_log=allow_log,
            allow_cap=allow_cap,
        ),
    )
    envelopes = [reduce_series(s, first, last, frame.columns) for s, _ in shown]
    lines = tuple(
        Line(s.name, style, line_path(frame, s, e), band_path(frame, s, e), dots(frame, s))
        for (s, style), e in zip(shown, envelopes, strict=True)
    )
    broken = np.unique(np.concatenate([e.broken for e in envelopes])).astype(np.float64)
    rug = frame.column_x(broken) if last > first else frame.x(np.full(len(broken), float(first)))
    inside = [m for m in marks if m.start <= last and m.end >= first]
    return framed(
        frame,
        x_ticks=_x_ticks(frame),
        lines=lines,
        shades=shades(frame, inside),
        outliers=tuple(o for e in envelopes for o in outliers(frame, e, x_name)),
        rug=tuple(round(float(x), 1) for x in rug),
        alt=describe(shown[0][0], [m.title for m in inside], x_name=x_name, log=frame.y_axis.log),
        hints=hints([s for s, _ in shown], frame.y_axis),
    )


def framed(
    frame: Frame,
    *,
    x_ticks: tuple[Tick, ...],
    lines: tuple[Line, ...],
    shades: tuple[Shade, ...],
    outliers: tuple[Outlier, ...] = (),
    rug: tuple[float, ...],
    alt: str,
    hints: tuple[str, ...],
) -> Chart:
    """Return a chart whose size and value axis are those of a frame."""
    return Chart(
        width=frame.right + RIGHT,
        height=frame.bottom + BOTTOM,
        left=frame.left,
        right=frame.right,
        top=frame.top,
        bottom=frame.bottom,
        x_ticks=x_ticks,
        y_ticks=tuple(
            Tick(round(float(frame.y(t)), 1), text)
            for t, text in zip(frame.y_axis.ticks, frame.y_axis.labels, strict=True)
        ),
        lines=lines,
        shades=shades,
        outliers=outliers,
        rug=rug,
        alt=alt,
        hints=hints,
    )


def _within(series: Series, first: int, last: int) -> Series:
    start, stop = np.searchsorted(series.step, [first, last + 1])
    if start == 0 and stop == len(series):
        return series
    return Series(series.name, series.step[start:stop], series.value[start:stop])


def _x_ticks(frame: Frame) -> tuple[Tick, ...]:
    ticks = []
    for value, text in zip(frame.x_axis.ticks, frame.x_axis.labels, strict=True):
        at = round(float(frame.x(value)), 1)
        # The last label would run out of the picture.
        anchor = "end" if frame.right - at < 3 * len(text) else "middle"
        ticks.append(Tick(frame.right if anchor == "end" else at, text, anchor))
    return tuple(ticks)


def shades(frame: Frame, marks: Sequence[Mark]) -> tuple[Shade, ...]:
    """Return the marks in pixels, by step, their badges side by side."""
    drawn = []
    ranked = sorted(marks, key=lambda m: (m.start, m.end))
    spans = [frame.x(np.array([m.start, m.end], dtype=np.float64)).tolist() for m in ranked]
    wanted = [start + BADGE / 2 if end - start > BADGE else (start + end) / 2 for start, end in spans]
    badges = spread(wanted, frame.left + BADGE / 2, frame.right - BADGE / 2, BADGE)
    for mark, (start, end), badge in zip(ranked, spans, badges, strict=True):
        missing = max(MIN_SHADE - (end - start), 0.0)
        drawn.append(
            Shade(
                x=round(start - missing / 2, 1),
                width=round(end - start + missing, 1),
                is_broad=end - start > BROAD * (frame.right - frame.left),
                badge_x=round(badge, 1),
                mark=mark,
            )
        )
    return tuple(drawn)


def spread(wanted: Sequence[float], low: float, high: float, gap: float) -> list[float]:
    """Return increasing places near the `wanted` ones, `gap` apart (less where there is no room for that)."""
    if len(wanted) > 1:
        gap = min(gap, (high - low) / (len(wanted) - 1))
    places: list[float] = []
    for want in wanted:
        places.append(max(want, low, places[-1] + gap if places else low))
    limit = high
    for index in reversed(range(len(places))):
        places[index] = min(places[index], limit)
        limit = places[index] - gap
    return places
