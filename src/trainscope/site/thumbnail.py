"""The picture of a run for a pull-request comment: its main curve with findings, light and dark."""

from __future__ import annotations

import re
from html import escape

from trainscope.report.html import WORDS
from trainscope.report.text import label, shorten
from trainscope.site.charts import Chart, line_chart
from trainscope.site.views import RunView

WIDTH, HEIGHT = 640, 190
HEAD = 54
"""Room above the chart for the run's name and verdict."""
LIGHT = {
    "card": "#ffffff",
    "line": "#d8dfe7",
    "grid": "#e8ecf1",
    "ink": "#17202c",
    "muted": "#55606f",
    "error": "#b92d25",
    "warning": "#955800",
    "info": "#1b6a9c",
    "pass": "#0a7350",
    "blue": "#0b62a4",
    "orange": "#a5540a",
    "green": "#0a7a5a",
    "purple": "#8a459b",
    "gray": "#5c6673",
}
DARK = {
    "card": "#0d1117",
    "line": "#2f3945",
    "grid": "#222b36",
    "ink": "#e6edf3",
    "muted": "#9aa7b5",
    "error": "#ff8078",
    "warning": "#f0b35e",
    "info": "#79c0ff",
    "pass": "#4cc9a0",
    "blue": "#6cb6ff",
    "orange": "#f0a35e",
    "green": "#4cc9a0",
    "purple": "#d2a8ff",
    "gray": "#9aa4b2",
}
"""The style sheet's colours, which a picture cannot look up."""
THEMES = {"light": LIGHT, "dark": DARK}
_FONT = "Liberation Sans"
"""Embedded in vl-convert: the same picture on every machine."""
_VARIABLE = re.compile(r"var\(--([a-z]+)\)")
_FAMILY = re.compile(r'font-family="[^"]*"')


def thumbnail_chart(view: RunView) -> Chart | None:
    """Return the chart of the picture, None for a run without a curve."""
    record = view.record
    if view.main is None:
        return None
    steps = record.entry.steps
    domain = None if steps.first is None or steps.last is None else (steps.first, steps.last)
    return line_chart(
        "thumb",
        record.curves[0],
        view.marks,
        height=HEIGHT,
        widths=(WIDTH,),
        x_name=record.entry.x_axis,
        domain=domain,
    )


def thumbnail_svg(view: RunView, drawn: str, theme: str) -> str:
    """Return the picture as SVG with fixed colours.

    Parameters
    ----------
    view : RunView
    drawn : str
        The chart, as it was drawn.
    theme : str
        ``light`` or ``dark``.
    """
    colors = THEMES[theme]
    tone = {"pass": "pass", "fail": "error", "error": "warning"}[view.record.verdict.status]
    name = escape(shorten(label(view.record.entry.name), 44))
    found = escape(shorten(view.record.verdict.reason, 84))
    chart = _FAMILY.sub(f'font-family="{_FONT}"', drawn)
    text = f'font-family="{_FONT}"'
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT + HEAD}">'
        f'<rect width="{WIDTH}" height="{HEIGHT + HEAD}" fill="var(--card)"/>'
        f'<rect width="4" height="{HEIGHT + HEAD}" fill="var(--{tone})"/>'
        f'<text x="16" y="25" {text} font-size="16" font-weight="bold" fill="var(--ink)">{name}</text>'
        f'<text x="16" y="44" {text} font-size="12" fill="var(--{tone})">'
        f'<tspan font-weight="bold">{WORDS[view.record.verdict.status]}</tspan>: {found}</text>'
        f'<g transform="translate(0,{HEAD - 4})">{chart[chart.index(">") + 1 : chart.rindex("</svg>")]}</g></svg>'
    )
    return _VARIABLE.sub(lambda m: colors[m.group(1)], svg)
