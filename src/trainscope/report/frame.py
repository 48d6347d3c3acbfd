"""From values to pixels: the frame of a chart, and the strokes drawn in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trainscope.core.run import FloatArray, IntArray, Series
from trainscope.report.axis import Axis
from trainscope.report.reduction import Envelope
from trainscope.report.text import figure

LABEL_GAP = 62.0
"""Least distance between two labelled outliers, in pixels."""
CLUSTER_GAP = 7.0
"""Outliers within this width share one triangle."""
SPARSE = 60
"""A series with no more points than this shows each as a dot."""


@dataclass(frozen=True, slots=True)
class Outlier:
    """Values beyond the axis, drawn as a triangle at its edge."""

    x: float
    y: float
    up: bool
    text: str
    """The value furthest out; empty where a neighbour's label takes the room."""
    anchor: str
    title: str


@dataclass(frozen=True, slots=True)
class Frame:
    """The plot area in pixels, and the two axes that fill it."""

    left: float
    right: float
    top: float
    bottom: float
    x_axis: Axis
    y_axis: Axis

    @property
    def columns(self) -> int:
        """Whole pixels across."""
        return max(int(self.right - self.left), 1)

    def x(self, steps: FloatArray | float) -> FloatArray:
        """Return the horizontal pixels of steps."""
        return self.left + self.x_axis.share(steps) * (self.right - self.left)

    def y(self, values: FloatArray | float) -> FloatArray:
        """Return the vertical pixels of values, clamped to the plot."""
        return self.bottom - self.y_axis.share(values) * (self.bottom - self.top)

    def column_x(self, bucket: FloatArray) -> FloatArray:
        """Return the middle of columns."""
        return self.left + (bucket + 0.5) * ((self.right - self.left) / self.columns)


def line_path(frame: Frame, series: Series, envelope: Envelope) -> str:
    """Return the path of a series: every point if there is room, else the median of each column.

    The line breaks where a value is not finite.
    """
    if is_dense(frame, series):
        breaks = np.isin(np.arange(frame.columns), envelope.broken)
        gap = np.cumsum(breaks)[envelope.bucket]
        xs, ys = frame.column_x(envelope.bucket.astype(np.float64)), frame.y(envelope.middle)
    else:
        finite = np.isfinite(series.value)
        gap = np.cumsum(~finite)[finite]
        xs, ys = frame.x(series.step[finite].astype(np.float64)), frame.y(series.value[finite])
    pieces = np.split(np.column_stack([xs, ys]), np.flatnonzero(np.diff(gap)) + 1)
    return "".join(_path(piece) for piece in pieces if len(piece))


def band_path(frame: Frame, series: Series, envelope: Envelope) -> str:
    """Return the outline from least to greatest value of each column; empty where each point is drawn."""
    if not is_dense(frame, series):
        return ""
    xs = frame.column_x(envelope.bucket.astype(np.float64))
    upper = np.column_stack([xs, frame.y(envelope.high)])
    lower = np.column_stack([xs, frame.y(envelope.low)])
    return _path(np.concatenate([upper, lower[::-1]])) + "z" if len(xs) else ""


def is_dense(frame: Frame, series: Series) -> bool:
    """Tell whether there are too many points to draw each."""
    return len(series) > 2 * frame.columns


def dots(frame: Frame, series: Series) -> tuple[tuple[float, float], ...]:
    """Return the points of a sparse series, in pixels."""
    if len(series) > SPARSE:
        return ()
    some = series.finite()
    xs, ys = frame.x(some.step.astype(np.float64)), frame.y(some.value)
    return tuple((round(float(x), 1), round(float(y), 1)) for x, y in zip(xs, ys, strict=True))


def _path(points: FloatArray) -> str:
    """Return SVG path data in tenths of a pixel, relative after the first point: half the bytes."""
    tenths = np.round(points * 10).astype(np.int64)
    moved = np.any(np.diff(tenths, axis=0) != 0, axis=1)
    tenths = tenths[np.concatenate([[True], moved])]
    start = f"M{_tenth(tenths[0, 0])} {_tenth(tenths[0, 1])}"
    if len(tenths) == 1:
        # A line of no length is a dot, with round caps.
        return start + "h0"
    return start + "l" + " ".join(f"{_tenth(dx)} {_tenth(dy)}" for dx, dy in np.diff(tenths, axis=0))


def _tenth(value: int) -> str:
    return f"{value / 10:g}"


def outliers(frame: Frame, envelope: Envelope, x_name: str) -> Iterator[Outlier]:
    """Yield a triangle for each cluster of columns with values beyond the axis, above first."""
    beyond = (
        (envelope.high, envelope.high_step, envelope.high > frame.y_axis.high, True),
        (envelope.low, envelope.low_step, envelope.low < frame.y_axis.low, False),
    )
    for value, step, outside, up in beyond:
        where = np.flatnonzero(outside)
        if len(where):
            xs = frame.x(step[where].astype(np.float64))
            yield from _triangles(frame, xs, value[where], step[where], x_name, up=up)


def _triangles(
    frame: Frame, xs: FloatArray, values: FloatArray, steps: IntArray, x_name: str, *, up: bool
) -> Iterator[Outlier]:
    clusters = _clusters(xs)
    worst = [int(c[np.argmax(values[c] if up else -values[c])]) for c in clusters]
    labelled = _with_room(xs, sorted(worst, key=lambda i: values[i], reverse=up))
    for cluster, peak in zip(clusters, worst, strict=True):
        x, shown = round(float(xs[peak]), 1), figure(float(values[peak]))
        near_edge = frame.right - x < LABEL_GAP / 2
        title = f"{shown} at {x_name} {steps[peak]}"
        if len(cluster) > 1:
            title += f", the furthest of {len(cluster)} columns beyond the axis"
        yield Outlier(
            x=x,
            y=frame.top if up else frame.bottom,
            up=up,
            text=shown if peak in labelled else "",
            anchor="end" if near_edge else "start" if x - frame.left < LABEL_GAP / 2 else "middle",
            title=title,
        )


def _clusters(xs: FloatArray) -> list[IntArray]:
    """Return the indices of `xs`, which increase, in groups no wider than the gap."""
    starts = [0]
    for index in range(1, len(xs)):
        if xs[index] - xs[starts[-1]] > CLUSTER_GAP:
            starts.append(index)
    return np.split(np.arange(len(xs)), starts[1:])


def _with_room(xs: FloatArray, ranked: list[int]) -> set[int]:
    """Return those of `ranked`, best first, whose labels do not touch a better one's."""
    kept: list[int] = []
    for index in ranked:
        if all(abs(float(xs[index] - xs[other])) >= LABEL_GAP for other in kept):
            kept.append(index)
    return set(kept)
