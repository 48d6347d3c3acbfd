"""The charts as Vega-Lite specifications, made by Altair: their form, without any run's data.

A form is made once a process; a run's numbers go in as named data sets and parameters. Nothing that a log says
is ever part of a form: names and texts are values of data, so no name can be an expression, a field or an
address. Colours are style-sheet variables: one picture serves light, dark and paper.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt

LEFT, RIGHT, TOP, BOTTOM = 54, 14, 26, 24
"""Room around the plot; left and right the same in every chart, so that stacked charts line up."""
BARE_TOP = 8
"""Room above a chart without numbers of findings."""
FONT = "system-ui, sans-serif"
Spec = dict[str, Any]


@lru_cache(maxsize=64)
def line_form(width: int, height: int, *, top: int, log: bool) -> Spec:
    """Return the form of a metric over steps, for a picture of `width` by `height` pixels.

    Data sets: ``points`` {s, v, a, b} (step, value, least, greatest), ``over`` {s, v}, ``dots`` {s, v},
    ``yticks`` {v, t}, ``xticks`` {s, t, g}, ``ranges`` {x, x2, y, y2, c}, ``rules`` {x, c}, ``rug`` {s},
    ``caps`` {x, y, tx, ty, t, g, m}, ``badges`` {x, t, c}. Parameters: ``x0 x1 y0 y1`` (axis limits), ``tone``.
    """
    import altair as alt

    plot_h = height - top - BOTTOM
    limits = {name: alt.ExprRef(name) for name in ("x0", "x1", "y0", "y1")}
    x_scale = alt.Scale(domain=[limits["x0"], limits["x1"]], nice=False, zero=False)
    kind: Any = "log" if log else "linear"
    y_scale = alt.Scale(domain=[limits["y0"], limits["y1"]], nice=False, zero=False, clamp=True, type=kind)

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", scale=x_scale, axis=None)

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", scale=y_scale, axis=None)

    tone, muted = alt.ExprRef("tone"), "var(--muted)"
    line: Spec = {"clip": True, "strokeWidth": 1.6, "strokeCap": "round", "strokeJoin": "round"}
    bottom = alt.value(plot_h)
    layers = [
        *_ranges(plot_h),
        data("yticks").mark_rule(color="var(--grid)").encode(y=y("v")),
        data("yticks").mark_text(align="right", color=muted, dx=-8).encode(y=y("v"), x=alt.value(0), text="t:N"),
        *_step_axis(x, plot_h),
        data("points").mark_area(opacity=0.26, color=tone, clip=True).encode(x=x("s"), y=y("a"), y2="b:Q"),
        data("points").mark_line(color=tone, **line).encode(x=x("s"), y=y("v")),
        data("dots").mark_point(color=tone, filled=True, size=14, opacity=1, clip=True).encode(x=x("s"), y=y("v")),
        data("over").mark_line(color="var(--orange)", **line).encode(x=x("s"), y=y("v")),
        data("rug")
        .mark_rule(color="var(--error)", strokeWidth=1.6)
        .encode(x=x("s"), y=alt.value(plot_h - 9), y2=bottom),
        *_caps(),
        *(_badges() if top >= TOP else ()),
    ]
    return _finished(layers, width, height, top=top)


@lru_cache(maxsize=16)
def heat_form(width: int, height: int) -> Spec:
    """Return the form of a map of rows over steps.

    Data sets: ``image`` {u} (our own picture), ``rows`` {y, t}, ``xticks`` {s, t, g}, ``rules`` {s, c},
    ``badges`` {x, t, c}, ``scale`` {u}, ``scale_ticks`` {x, t, g}. Parameters: ``x0 x1``.
    """
    import altair as alt

    plot_w, plot_h = width - HEAT_LEFT - RIGHT, height - HEAT_TOP - BOTTOM
    x_scale = alt.Scale(domain=[alt.ExprRef("x0"), alt.ExprRef("x1")], nice=False, zero=False)

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", scale=x_scale, axis=None)

    def image(name: str, width: int, height: int, at: tuple[float, float], *, smooth: bool) -> alt.Chart:
        shape: Spec = {"aspect": False, "width": width, "height": height, "align": "left", "baseline": "top"}
        mark = data(name).mark_image(smooth=smooth, **shape)
        placed: alt.Chart = mark.encode(x=alt.value(at[0]), y=alt.value(at[1]), url="u:N")
        return placed

    names = data("rows").mark_text(align="right", dx=-8, color="var(--muted)", limit=HEAT_LEFT - 14)
    legend_x = plot_w - SCALE_WIDTH
    layers = [
        image("image", plot_w, plot_h, (0, 0), smooth=False),
        names.encode(x=alt.value(0), y=_pixel(alt.Y, "y"), text="t:N"),
        *_step_axis(x, plot_h),
        image("scale", SCALE_WIDTH, 8, (legend_x, 6 - HEAT_TOP), smooth=True),
        data("scale_ticks")
        .mark_text(color="var(--muted)", align=alt.ExprRef("datum.g"))
        .encode(x=_pixel(alt.X, "x"), y=alt.value(24 - HEAT_TOP), text="t:N"),
        *_badges(),
    ]
    return _finished(layers, width, height, left=HEAT_LEFT, top=HEAT_TOP)


HEAT_LEFT, HEAT_TOP, SCALE_WIDTH = 148, 52, 180
"""Room for names left of a map, and for its colour scale above."""


def data(name: str) -> alt.Chart:
    """Return the beginning of a layer that draws one of the data sets."""
    import altair as alt

    return alt.Chart(alt.NamedData(name))


def _pixel(channel: Callable[..., Any], field: str) -> Any:  # noqa: ANN401 - one of Altair's channels
    """Return an encoding whose values are pixels already."""
    return channel(f"{field}:Q", scale=None, axis=None)


def _ranges(plot_h: int) -> list[alt.Chart]:
    import altair as alt

    ranges = data("ranges").mark_rect(opacity=0.13)
    color = alt.Color("c:N", scale=None)
    shaded = ranges.encode(x=_pixel(alt.X, "x"), x2="x2:Q", y=_pixel(alt.Y, "y"), y2="y2:Q", color=color)
    rules = data("rules").mark_rule(strokeWidth=1.4, strokeDash=[4, 3])
    return [shaded, rules.encode(x=_pixel(alt.X, "x"), y=alt.value(0), y2=alt.value(plot_h), color=color)]


def _step_axis(x: Callable[[str], alt.X], plot_h: int) -> list[alt.Chart]:
    import altair as alt

    ticks = data("xticks")
    floor = ticks.mark_rule(color="var(--line)").encode(x=x("s"), y=alt.value(plot_h), y2=alt.value(plot_h + 4))
    text = ticks.mark_text(color="var(--muted)", align=alt.ExprRef("datum.g"))
    return [floor, text.encode(x=x("s"), y=alt.value(plot_h + 14), text="t:N")]


def _caps() -> list[alt.Chart]:
    """Return the triangles at values beyond the axis, and the values of some."""
    import altair as alt

    at = {"x": _pixel(alt.X, "x"), "y": _pixel(alt.Y, "y")}
    caps = data("caps")
    shape = alt.Shape("m:N", scale=None)
    text = caps.mark_text(color="var(--ink)", align=alt.ExprRef("datum.g"), fontWeight=600)
    return [
        caps.mark_point(filled=True, size=34, color="var(--ink)", opacity=1).encode(**at, shape=shape),
        text.encode(x=_pixel(alt.X, "tx"), y=_pixel(alt.Y, "ty"), text="t:N"),
    ]


def _badges() -> list[alt.Chart]:
    """Return the numbers of findings, above the plot where they hide nothing."""
    import altair as alt

    at = {"x": _pixel(alt.X, "x"), "y": alt.value(-13)}
    badges = data("badges")
    disc = badges.mark_point(shape="circle", filled=True, size=210, opacity=1)
    text = badges.mark_text(fontWeight=700, fontSize=10.5, color="var(--card)")
    return [disc.encode(**at, color=alt.Color("c:N", scale=None)), text.encode(**at, text="t:N")]


def _finished(layers: list[alt.Chart], width: int, height: int, *, left: int = LEFT, top: int = TOP) -> Spec:
    import altair as alt

    size = {"width": width - left - RIGHT, "height": height - top - BOTTOM}
    spec: Spec = alt.layer(*layers).resolve_scale(color="independent").to_dict(validate=False)
    spec |= {**size, "autosize": {"type": "none"}}
    spec["padding"] = {"left": left, "right": RIGHT, "top": top, "bottom": BOTTOM}
    # Without its address: the version is fixed where the picture is drawn.
    del spec["$schema"]
    text = {"font": FONT, "fontSize": 11}
    spec["config"] = {"aria": False, "background": None, "view": {"stroke": None}, "font": FONT, "text": text}
    return spec
