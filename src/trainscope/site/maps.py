"""Heat maps of rows over steps: a small indexed picture, with names, ticks and a colour scale around it."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from trainscope.report.axis import Axis, step_axis
from trainscope.report.charts import Mark
from trainscope.report.frame import Frame
from trainscope.report.text import figure, label, plural
from trainscope.site.bundle import Rows
from trainscope.site.charts import NARROW, WIDE, Chart, Drawing, filled
from trainscope.site.data_sets import badge_rows, step_ticks
from trainscope.site.forms import BOTTOM, HEAT_LEFT, HEAT_TOP, RIGHT, SCALE_WIDTH, heat_form
from trainscope.site.rows import GREATEST, LEAST, NON_FINITE, cells_of

Stop = tuple[int, int, int, int]
"""Red, green, blue and opacity, 0 to 255."""
INFERNO: tuple[Stop, ...] = (
    (20, 12, 48, 255),
    (66, 18, 110, 255),
    (120, 33, 120, 255),
    (172, 48, 102, 255),
    (219, 80, 68, 255),
    (246, 134, 28, 255),
    (252, 196, 60, 255),
    (250, 240, 150, 255),
)
STARVED_LOADED: tuple[Stop, ...] = (
    (30, 110, 190, 255),
    (30, 110, 190, 150),
    (128, 128, 128, 0),
    (214, 70, 40, 150),
    (214, 70, 40, 255),
)
"""Opacity carries the size, so that an even share is the page's own colour, dark or light."""
BROKEN_COLOR: Stop = (255, 0, 90, 255)
ROW_HEIGHT, LEAST_HEIGHT, GREATEST_HEIGHT = 15, 60, 330


def heat_chart(
    key: str,
    rows: Rows,
    marks: Sequence[Mark],
    *,
    title: str,
    stops: Sequence[Stop] = INFERNO,
    hints: Sequence[str] = (),
    scale: Sequence[tuple[float, str]] = (),
    x_name: str = "step",
    data: str = "",
) -> Chart:
    """Return the map of some rows.

    Parameters
    ----------
    key : str
        Unique on its page.
    rows : Rows
    marks : sequence of Mark
        Findings whose number stands above the map.
    title : str
    stops : sequence of Stop
        Colours from the least to the greatest value.
    hints : sequence of str
        What the eye should know.
    scale : sequence of (float, str)
        Labelled places of the colour scale, 0 to 1; its ends and middle if not given.
    x_name : str
        What a step is called in words.
    data : str
        Where the numbers are in the record.
    """
    plot_h = min(max(ROW_HEIGHT * len(rows.rows), LEAST_HEIGHT), GREATEST_HEIGHT)
    image = _data_uri(cells_of(rows), _palette(stops))
    gradient = np.linspace(LEAST, GREATEST, SCALE_WIDTH).round().astype(np.uint8)[None, :]
    scale_uri = _data_uri(gradient, _palette(stops))
    height, drawings = plot_h + HEAT_TOP + BOTTOM, []
    places = scale or tuple((p, f"{_value_at(rows, p):.3g}") for p in (0.0, 0.5, 1.0))
    inside = [m for m in marks if m.start <= rows.last and m.end >= rows.first]
    for width in (WIDE, NARROW):
        axis = step_axis(rows.first, rows.last, max(round(width / 110), 3))
        frame = Frame(0.0, float(width - HEAT_LEFT - RIGHT), 0.0, float(plot_h), axis, Axis(0, 1, (), ()))
        start = frame.right - SCALE_WIDTH
        sets: dict[str, list[dict[str, Any]]] = {
            "image": [{"u": image}],
            "rows": _row_names(rows, plot_h),
            "xticks": step_ticks(axis, frame),
            "badges": badge_rows(frame, inside),
            "scale": [{"u": scale_uri}],
            "scale_ticks": [{"x": start + p * SCALE_WIDTH, "t": t, "g": _side(p)} for p, t in places],
        }
        plot = (HEAT_LEFT, HEAT_TOP, width - RIGHT, height - BOTTOM)
        spec = filled(heat_form(width, height), sets, {"x0": axis.low, "x1": axis.high})
        drawings.append(Drawing(f"{key}-{width}", width, height, plot, spec))
    left_out = (f"{rows.left_out} more left out",) if rows.left_out else ()
    return Chart(
        title=title,
        hints=(*hints, *(("log scale",) if rows.log else ()), *left_out),
        alt=_described(rows, title, x_name),
        domain=(rows.first, rows.last),
        drawings=tuple(drawings),
        data=data,
    )


def _value_at(rows: Rows, share: float) -> float:
    if rows.log:
        return float(rows.low * (rows.high / rows.low) ** share)
    return rows.low + share * (rows.high - rows.low)


def _side(share: float) -> str:
    return "left" if share < 0.1 else "right" if share > 0.9 else "center"


def _row_names(rows: Rows, plot_h: int) -> list[dict[str, Any]]:
    """Return the names that have room, each at the middle of its row."""
    tall = plot_h / len(rows.rows)
    every = max(math.ceil(12 / tall), 1)
    # The end of a layer's name tells more than its beginning.
    return [{"y": round((i + 0.5) * tall, 1), "t": _tail(name)} for i, name in enumerate(rows.rows) if i % every == 0]


def _tail(name: str, most: int = 21) -> str:
    shown = label(name)
    return shown if len(shown) <= most else "…" + shown[-(most - 1) :]


def _described(rows: Rows, title: str, x_name: str) -> str:
    head = f"{title}: {plural(len(rows.rows), 'row')} over {x_name}s {rows.first} to {rows.last}."
    known = [
        (float(p[1]), p[0], n) for p, n in zip(rows.peak, rows.rows, strict=True) if p and not isinstance(p[1], str)
    ]
    parts = [head]
    for value, step, name in sorted(known, key=lambda k: -k[0])[:3]:
        parts.append(f"{label(name, 60)} reaches {figure(value)} at {x_name} {step}.")
    broken = int(np.count_nonzero((cells_of(rows) == NON_FINITE).any(axis=1)))
    if broken:
        parts.append(f"{plural(broken, 'row')} with NaN or infinity.")
    return " ".join(parts)


def _palette(stops: Sequence[Stop]) -> np.ndarray:
    """Return 256 colours: nothing, 254 from least to greatest, not finite."""
    table = np.array(stops, dtype=np.float64)
    at = np.linspace(0, len(stops) - 1, GREATEST - LEAST + 1)
    colors = np.stack([np.interp(at, np.arange(len(stops)), table[:, c]) for c in range(4)], axis=1)
    return np.concatenate([[[0, 0, 0, 0]], colors, [BROKEN_COLOR]]).round().astype(np.uint8)


def _data_uri(cells: np.ndarray, palette: np.ndarray) -> str:
    """Return an indexed PNG, as small as such pictures get: one byte a pixel, deflated."""
    height, width = cells.shape
    # Fewer colours look the same and deflate to a third.
    coarse = np.where((cells > 0) & (cells < NON_FINITE), (cells // 4) * 4 + 2, cells).astype(np.uint8)
    used = np.unique(coarse)
    index = np.searchsorted(used, coarse).astype(np.uint8)
    colors = palette[np.minimum(used, NON_FINITE)]
    lines = b"".join(b"\0" + row.tobytes() for row in index)
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", colors[:, :3].tobytes()),
        (b"tRNS", colors[:, 3].tobytes()),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    )
    body = b"".join(struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in chunks)
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()
