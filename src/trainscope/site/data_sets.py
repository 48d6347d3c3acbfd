"""The numbers that go into a form: points and ticks in the chart's own units, decorations in pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trainscope.core.run import FloatArray
from trainscope.report.axis import Axis
from trainscope.report.charts import Mark, shades
from trainscope.report.frame import Frame, Outlier, outliers
from trainscope.report.reduction import Envelope
from trainscope.site.bundle import Curve

SPARSE = 60
"""A curve with no more points than this shows each as a dot."""


def data_sets(
    frame: Frame, curve: Curve, overlay: Curve | None, marks: Sequence[Mark], rules: Sequence[int], x_name: str
) -> dict[str, list[dict[str, Any]]]:
    """Return what goes into a line form: places in the chart's own units, decorations in pixels."""
    low, high = curve.low or [None] * len(curve.step), curve.high or [None] * len(curve.step)
    rows = zip(curve.step, curve.middle, low, high, strict=True)
    over = [] if overlay is None else zip(overlay.step, overlay.middle, strict=True)
    some = [(s, v) for s, v in zip(curve.step, curve.middle, strict=True) if v is not None]
    return {
        "points": [{"s": s, "v": v, "a": a, "b": b} for s, v, a, b in rows],
        "over": [{"s": s, "v": v} for s, v in over],
        "dots": [{"s": s, "v": v} for s, v in some] if len(curve.step) <= SPARSE else [],
        "yticks": [{"v": v, "t": t} for v, t in zip(frame.y_axis.ticks, frame.y_axis.labels, strict=True)],
        "xticks": step_ticks(frame.x_axis, frame),
        "ranges": _range_rows(frame, marks),
        "rules": [{"x": round(float(frame.x(r)), 1), "c": "var(--purple)"} for r in rules],
        "rug": [{"s": s} for s in curve.broken if frame.x_axis.low <= s <= frame.x_axis.high],
        "caps": [row for c in (curve, overlay) if c is not None for row in _cap_rows(frame, c, x_name)],
        "badges": badge_rows(frame, marks),
    }


def _range_rows(frame: Frame, marks: Sequence[Mark]) -> list[dict[str, Any]]:
    rows = []
    for shade in shades(frame, marks):
        # A range over most of the plot is a bar at its top: filling it would say nothing.
        bottom = 4 if shade.is_broad else frame.bottom
        ends = {"x": max(shade.x, frame.left), "x2": min(shade.x + shade.width, frame.right)}
        rows.append({**ends, "y": 0, "y2": bottom, "c": f"var(--{shade.mark.severity})"})
    return rows


def _cap_rows(frame: Frame, curve: Curve, x_name: str) -> list[dict[str, Any]]:
    some = [i for i, v in enumerate(curve.middle) if v is not None]
    middle = _column(curve.middle, some)
    low, high = (_column(c, some) if c else middle for c in (curve.low, curve.high))
    step = np.array([curve.step[i] for i in some], dtype=np.int64)
    envelope = Envelope(step, low, high, middle, step, step, np.array([], dtype=np.int64))
    return [_cap_row(o) for o in outliers(frame, envelope, x_name)]


def _cap_row(outlier: Outlier) -> dict[str, Any]:
    """Return a triangle at the edge of the plot, its value beside it: under it runs the line."""
    way = -1 if outlier.anchor == "end" else 1
    inwards = 1 if outlier.up else -1
    return {
        "x": outlier.x,
        "y": outlier.y + 3 * inwards,
        "tx": outlier.x + 7 * way,
        "ty": outlier.y + 7 * inwards,
        "t": outlier.text,
        "g": "right" if way < 0 else "left",
        "m": "triangle-up" if outlier.up else "triangle-down",
    }


def _column(values: Sequence[float | None], kept: Sequence[int]) -> FloatArray:
    return np.array([values[i] for i in kept], dtype=np.float64)


def step_ticks(axis: Axis, frame: Frame) -> list[dict[str, Any]]:
    """Return the ticks of a step axis; the last one ends at the edge where it would run out of the picture."""
    ticks = []
    for value, text in zip(axis.ticks, axis.labels, strict=True):
        near = frame.right - float(frame.x(value)) < 3 * len(text)
        ticks.append({"s": value, "t": text, "g": "right" if near else "center"})
    return ticks


def badge_rows(frame: Frame, marks: Sequence[Mark]) -> list[dict[str, Any]]:
    """Return the numbers of findings, side by side."""
    return [
        {"x": s.badge_x, "t": s.mark.badge, "c": f"var(--{s.mark.severity})"}
        for s in shades(frame, marks)
        if s.mark.badge
    ]
