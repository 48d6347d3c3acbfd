"""Charts of a record: a form, the numbers that go into it, and the same in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainscope.core.metrics import Kind, kind
from trainscope.core.run import FloatArray
from trainscope.report.axis import Axis, pooled, step_axis, value_axis
from trainscope.report.charts import Mark
from trainscope.report.frame import Frame
from trainscope.report.text import figure, label, plural
from trainscope.site.bundle import Curve
from trainscope.site.curves import outlined
from trainscope.site.data_sets import data_sets
from trainscope.site.forms import BARE_TOP, BOTTOM, LEFT, RIGHT, TOP, line_form

WIDE, NARROW = 920, 358
"""Widths at which charts are drawn: the page's column, and a phone's."""
NARROW_ROWS = 150
"""Rows of a curve on a narrow chart: two pixels each."""
TONES = {
    "loss": "blue",
    "eval": "orange",
    "grad": "green",
    "rate": "purple",
    "time": "gray",
    "score": "green",
    "other": "gray",
}
"""Style class to the colour of its line, a variable of the style sheet."""
Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Drawing:
    """One chart in one width, to be drawn."""

    key: str
    """Unique on its page."""
    width: int
    height: int
    plot: tuple[int, int, int, int]
    """Left, top, right and bottom edge of the plot, in pixels."""
    spec: Spec
    """Vega-Lite, complete."""


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart, in the widths of its page."""

    title: str
    hints: tuple[str, ...]
    """What the eye should know: unit, log scale, values beyond the axis, values that are no number."""
    alt: str
    """The chart in words and numbers."""
    domain: tuple[int, int]
    """First and last step."""
    drawings: tuple[Drawing, ...]
    style: str = ""
    data: str = ""
    """Where its numbers are in the record, for the crosshair: ``curves.0``."""
    key: tuple[tuple[str, str], ...] = field(default=())
    """Style class and name of each line, where there are several."""


def line_chart(
    key: str,
    curve: Curve,
    marks: Sequence[Mark] = (),
    *,
    height: int,
    widths: Sequence[int] = (WIDE, NARROW),
    x_name: str = "step",
    overlay: Curve | None = None,
    rules: Sequence[int] = (),
    domain: tuple[int, int] | None = None,
    allow_cap: bool = True,
    data: str = "",
    rule_name: str = "",
) -> Chart:
    """Return the chart of a curve.

    Parameters
    ----------
    key : str
        Unique on its page.
    curve : Curve
    marks : sequence of Mark
        Findings, shaded; those with a badge get it above the plot.
    height : int
        Of the whole picture, in pixels.
    widths : sequence of int
        One drawing each.
    x_name : str
        What a step is called in words.
    overlay : Curve, optional
        Drawn on the same axis.
    rules : sequence of int
        Steps to mark with a dashed line.
    domain : (int, int), optional
        First and last step of the axis; the curve's own if not given.
    allow_cap : bool
        Whether outliers may be drawn at the edge, so that they do not flatten the rest.
    data : str
        Where the numbers are in the record.
    rule_name : str
        What a rule is, in words.
    """
    first, last = domain or (curve.step[0], curve.step[-1])
    inside = [m for m in marks if m.start <= last and m.end >= first]
    curves = [curve] if overlay is None else [curve, overlay]
    # The shape of a schedule is what one looks for, and it is drawn in straight lines.
    allow_log = kind(curve.name) != Kind.LEARNING_RATE
    top = TOP if any(m.badge for m in inside) else BARE_TOP
    ticks = max(round((height - top - BOTTOM) / 34), 3)
    y_axis = value_axis(pooled([_values(c) for c in curves]), ticks, allow_log=allow_log, allow_cap=allow_cap)
    drawings = []
    for width in widths:
        shown = outlined(curve, NARROW_ROWS) if width <= NARROW else curve
        frame = _frame(width, height - top, step_axis(first, last, max(round(width / 90), 3)), y_axis)
        sets = data_sets(frame, shown, overlay, inside, [r for r in rules if first <= r <= last], x_name)
        plot = (LEFT, top, width - RIGHT, height - BOTTOM)
        spec = filled(line_form(width, height, top=top, log=y_axis.log), sets, _limits(frame, curve.style))
        drawings.append(Drawing(f"{key}-{width}", width, height, plot, spec))
    marked = [m.title for m in inside] + ([f"{rule_name} {_listed(rules)}"] if rules and rule_name else [])
    names = tuple((c.style, label(c.name, 60)) for c in curves) if overlay is not None else ()
    return Chart(
        title=label(curve.name, 80),
        hints=_hints(curves, y_axis),
        alt=described(curve, marked, x_name=x_name, log=y_axis.log),
        domain=(first, last),
        drawings=tuple(drawings),
        style=curve.style,
        data=data,
        key=names,
    )


def filled(form: Spec, sets: dict[str, list[dict[str, Any]]], params: dict[str, Any]) -> Spec:
    """Return a form with a run's data in it."""
    return {**form, "datasets": sets, "params": [{"name": name, "value": v} for name, v in params.items()]}


def described(curve: Curve, marked: Sequence[str], *, x_name: str, log: bool) -> str:
    """Return a chart's text alternative: the same facts, in words and numbers."""
    head = f"{label(curve.name)} over {x_name}s {curve.step[0]} to {curve.step[-1]}, {plural(curve.count, 'value')}"
    head += ", log scale." if log else "."
    if curve.first is None or curve.last is None or curve.least is None or curve.most is None:
        return f"{head} All values are NaN or infinite."
    parts = [
        head,
        f"Starts at {figure(curve.first[1])}, ends at {figure(curve.last[1])};",
        f"least {figure(curve.least[1])} at {x_name} {curve.least[0]},",
        f"greatest {figure(curve.most[1])} at {x_name} {curve.most[0]}.",
    ]
    if curve.broken_count:
        parts.append(f"{plural(curve.broken_count, 'value')} NaN or infinite.")
    parts += [f"Marked: {title}." for title in marked[:12]]
    return " ".join(parts)


def _frame(width: int, height: int, x_axis: Axis, y_axis: Axis) -> Frame:
    return Frame(0.0, float(width - LEFT - RIGHT), 0.0, float(height - BOTTOM), x_axis, y_axis)


def _limits(frame: Frame, style: str) -> dict[str, Any]:
    limits = {"x0": frame.x_axis.low, "x1": frame.x_axis.high, "y0": frame.y_axis.low, "y1": frame.y_axis.high}
    return {**limits, "tone": f"var(--{TONES[style]})"}


def _values(curve: Curve) -> FloatArray:
    every = [v for column in (curve.middle, curve.low, curve.high) for v in column if v is not None]
    return np.array(every, dtype=np.float64)


def _hints(curves: Sequence[Curve], axis: Axis) -> tuple[str, ...]:
    curve = curves[0]
    told = [curve.unit] if curve.unit else []
    if axis.log:
        told.append("log scale")
    if curve.low:
        told.append("line: median, band: least to greatest")
    outside = sum(int(np.count_nonzero((v > axis.high) | (v < axis.low))) for v in map(_values, curves))
    if outside:
        told.append("▲ beyond the axis")
    broken = sum(c.broken_count for c in curves)
    if broken:
        told.append(f"{broken} NaN or infinite, red at the foot")
    return tuple(told)


def _listed(steps: Sequence[int]) -> str:
    shown = ", ".join(str(s) for s in steps[:12])
    return shown + (f" and {len(steps) - 12} more" if len(steps) > 12 else "")
