"""The charts that a browser draws when asked: to explore a curve, and to compare two."""

from __future__ import annotations

from typing import Any

from trainscope.site.forms import FONT, Spec, data

NUMBER = "format(datum.value, '.5~g')"
"""Vega's own choice of digits writes 10 as 1e+1."""


def explore_form(*, log: bool, width: int) -> Spec:
    """Return the form that a browser draws when asked: the curve to zoom into, above all of it."""
    import altair as alt

    kind: Any = "log" if log else "linear"
    linear: Spec = {} if log else {"zero": False}
    brush = alt.selection_interval(encodings=["x"], name="zoom")
    y_scale = alt.Scale(type=kind, nice=False, **linear)
    steps = alt.Axis(title=None, grid=False, format="~s", labelFlush=True)
    x = alt.X("s:Q", scale=alt.Scale(domain=brush, nice=False, zero=False), axis=steps)
    tips = [
        alt.Tooltip("s:Q", title="step", format=","),
        alt.Tooltip("v:Q", title="value", format=".5~g"),
        alt.Tooltip("a:Q", title="least", format=".5~g"),
        alt.Tooltip("b:Q", title="greatest", format=".5~g"),
    ]
    points = data("points")
    axis = alt.Axis(title=None, labelExpr=NUMBER, tickCount=6)
    band = points.mark_area(opacity=0.26, color="var(--blue)", clip=True)
    line = points.mark_line(color="var(--blue)", strokeWidth=1.6, clip=True, strokeCap="round")
    dots = points.mark_point(color="var(--blue)", size=60, opacity=0, filled=True, clip=True)
    y = alt.Y("v:Q", scale=y_scale, axis=axis)
    broken = data("rug").mark_rule(color="var(--error)", clip=True).encode(x=x)
    above = alt.layer(
        band.encode(x=x, y=alt.Y("a:Q", scale=y_scale, axis=axis), y2="b:Q"),
        line.encode(x=x, y=y),
        dots.encode(x=x, y=y, tooltip=tips),
        broken,
    ).properties(width=width, height=300 if width > 500 else 220)
    whole = alt.X("s:Q", scale=alt.Scale(nice=False, zero=False), axis=steps)
    below = (
        points.mark_line(color="var(--blue)", strokeWidth=1)
        .encode(x=whole, y=alt.Y("v:Q", scale=y_scale, axis=None))
        .properties(width=width, height=56)
        .add_params(brush)
    )
    return _with_axes(alt.vconcat(above, below, spacing=10).to_dict(validate=False), ("points", "rug"))


def compare_form(*, log: bool, width: int) -> Spec:
    """Return the form in which a browser lays two curves over each other, above their signed difference."""
    import altair as alt

    kind: Any = "log" if log else "linear"
    linear: Spec = {} if log else {"zero": False}
    x_scale = alt.Scale(nice=False, zero=False)
    steps = alt.Axis(title=None, grid=False, format="~s", labelFlush=True)
    two = alt.Scale(domain=["A", "B"], range=["var(--blue)", "var(--orange)"])
    dash = alt.Scale(domain=["A", "B"], range=[[1, 0], [6, 3]])
    value = alt.Y("v:Q", scale=alt.Scale(type=kind, nice=False, **linear), axis=alt.Axis(title=None, labelExpr=NUMBER))
    tips = [alt.Tooltip("k:N", title="run"), alt.Tooltip("s:Q", title="step", format=","), alt.Tooltip("v:Q")]
    x = alt.X("s:Q", scale=x_scale, axis=steps)
    color = alt.Color("k:N", scale=two, legend=None)
    lines = data("both").mark_line(strokeWidth=1.6, strokeCap="round")
    part = data("parting").mark_rule(color="var(--error)", strokeDash=[4, 3]).encode(x=x)
    over = alt.layer(
        lines.encode(x=x, y=value, color=color, strokeDash=alt.StrokeDash("k:N", scale=dash, legend=None)),
        data("both").mark_point(opacity=0, size=60, filled=True).encode(x=x, y=value, color=color, tooltip=tips),
        part,
    ).properties(width=width, height=260)
    change = alt.Y("d:Q", axis=alt.Axis(title=None, labelExpr=NUMBER, tickCount=4), scale=alt.Scale(nice=False))
    under = alt.layer(
        data("difference").mark_area(opacity=0.3, color="var(--purple)").encode(x=x, y=change),
        data("difference").mark_line(color="var(--purple)", strokeWidth=1.4).encode(x=x, y=change),
        part,
    ).properties(width=width, height=110)
    chart = alt.vconcat(over, under, spacing=12).resolve_scale(x="shared")
    return _with_axes(chart.to_dict(validate=False), ("both", "difference", "parting"))


def _with_axes(spec: Spec, names: tuple[str, ...]) -> Spec:
    """Give a form that a browser draws its look; its data come later."""
    axis: Spec = {"domainColor": "var(--line)", "gridColor": "var(--grid)", "tickColor": "var(--line)"}
    axis |= {"labelColor": "var(--muted)", "labelFontSize": 11.5, "labelPadding": 6}
    config: Spec = {"aria": False, "background": None, "view": {"stroke": None}, "font": FONT, "axis": axis}
    config["axisY"] = {"minExtent": 46, "maxExtent": 46, "domain": False, "ticks": False}
    config["selection"] = {"interval": {"mark": {"fill": "var(--blue)", "fillOpacity": 0.14, "stroke": "var(--blue)"}}}
    del spec["$schema"]
    return {**spec, "config": config, "datasets": {name: [] for name in names}}
