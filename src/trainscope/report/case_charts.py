"""The drawings of a case file: an incident as lanes of signs, and the common fate of runs as a band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.run import FloatArray
from trainscope.report.axis import step_axis, value_axis
from trainscope.report.case_document import BandEntry
from trainscope.report.case_text import STAGES
from trainscope.report.charts import BOTTOM, LEFT, RIGHT, TOP, Chart, Line, Mark, Shade, Tick, framed, spread
from trainscope.report.frame import Frame
from trainscope.report.part import Number
from trainscope.report.story_document import Incident, StoryEvent
from trainscope.report.text import figure, label, plural

LANE = 30.0
"""Height of the lane of one stage."""
LANE_LEFT = 84.0
"""Room for the names of the lanes."""
DOT = 15.0
"""Least distance between the dots of one lane."""
MOST_DOTS = 24
"""Signs that are drawn; the table has all."""


@dataclass(frozen=True, slots=True)
class Dot:
    """One sign in its lane."""

    x: float
    y: float
    end: float
    """Where its bar ends; `x` for none."""
    number: str
    title: str
    is_first: bool


@dataclass(frozen=True, slots=True)
class Lanes:
    """An incident as a drawing; lengths in pixels."""

    width: float
    height: float
    left: float
    right: float
    bottom: float
    names: tuple[tuple[float, str], ...]
    """Middle of each lane and its name, in causal order."""
    ticks: tuple[Tick, ...]
    dots: tuple[Dot, ...]
    loss_x: float | None
    """Where the loss first shows it."""
    alt: str


def lanes(incident: Incident, events: Sequence[StoryEvent], width: float, x_name: str) -> Lanes:
    """Lay out an incident: one lane a stage, in causal order, and a numbered dot for each sign."""
    signs = events[:MOST_DOTS]
    stages = [stage for stage in STAGES if any(s.stage == stage for s in signs)]
    first, last = _span(signs, incident.loss_step)
    right, bottom = width - RIGHT, 12.0 + LANE * len(stages)
    axis = step_axis(first, last, max(round((right - LANE_LEFT) / 90), 2))

    def x_of(step: float) -> float:
        return LANE_LEFT + float(axis.share(step)) * (right - LANE_LEFT)

    numbered = list(enumerate(signs, 1))
    dots: list[Dot] = []
    for lane, stage in enumerate(stages):
        mine = [(n, s) for n, s in numbered if s.stage == stage]
        places = spread([x_of(s.step) for _, s in mine], LANE_LEFT + 9, right - 9, DOT)
        for (number, sign), x in zip(mine, places, strict=True):
            end = x if sign.end_step is None else max(x_of(min(sign.end_step, last)), x)
            y = 12.0 + LANE * (lane + 0.5)
            where = f", {label(sign.where, 60)}" if sign.where is not None else ""
            title = f"{number}. {x_name} {sign.step}{where}: {label(sign.signal, 60)} {label(sign.event, 200)}"
            dots.append(Dot(round(x, 1), y, round(end, 1), str(number), title, number == 1))
    loss = incident.loss_step
    return Lanes(
        width=width,
        height=bottom + BOTTOM,
        left=LANE_LEFT,
        right=right,
        bottom=bottom,
        names=tuple((12.0 + LANE * (i + 0.5), STAGES[stage]) for i, stage in enumerate(stages)),
        ticks=tuple(Tick(round(x_of(t), 1), text) for t, text in zip(axis.ticks, axis.labels, strict=True)),
        dots=tuple(sorted(dots, key=lambda d: int(d.number))),
        loss_x=None if loss is None else round(x_of(loss), 1),
        alt=f"{plural(len(events), 'sign')} from {x_name} {incident.onset} to {incident.end}",
    )


def _span(signs: Sequence[StoryEvent], loss_step: int | None) -> tuple[int, int]:
    """Return the steps to show: all beginnings, with room on both sides; a bar may run out of the picture."""
    steps = [s.step for s in signs] + ([loss_step] if loss_step is not None else [])
    room = max((max(steps) - min(steps)) // 4, 5)
    return min(steps) - min(room, max(min(steps), 0)), max(steps) + room


def fate_chart(band: BandEntry, width: float, height: float) -> Chart | None:
    """Lay out a band; None where no run could be aligned."""
    if not band.offset:
        return None
    offset = np.array(band.offset)
    median, low, high, other = (
        _array(column, len(offset)) for column in (band.median, band.low, band.high, band.counterexample)
    )
    values = np.concatenate([median, low, high, other])
    frame = Frame(
        left=LEFT,
        right=width - RIGHT,
        top=TOP,
        bottom=height - BOTTOM,
        x_axis=step_axis(int(offset[0]), int(offset[-1]), max(round(width / 90), 3)),
        y_axis=value_axis(values, max(round((height - TOP - BOTTOM) / 34), 4)),
    )
    x = frame.x(offset.astype(np.float64))
    onset = float(frame.x(0.0))
    mark = Mark(0, 0, "error", "", "the first sign of trouble")
    lines = [
        Line("nearest stable run", "eval", _path(x, frame.y(other), np.isfinite(other)), "", ()),
        Line("these runs", "loss", _path(x, frame.y(median), ~np.isnan(median)), _area(frame, x, low, high), ()),
    ]
    return framed(
        frame,
        x_ticks=tuple(
            Tick(round(float(frame.x(t)), 1), text if t <= 0 else f"+{text}")
            for t, text in zip(frame.x_axis.ticks, frame.x_axis.labels, strict=True)
        ),
        lines=tuple(line for line in lines if line.path),
        shades=(Shade(onset - 1.0, 2.0, False, onset, mark),),
        rug=tuple(round(float(v), 1) for v in x[np.isinf(median)]),
        alt=_alt(band),
        hints=("log scale",) if frame.y_axis.log else (),
    )


def _array(column: Sequence[Number | None], size: int) -> FloatArray:
    if not column:
        return np.full(size, np.nan)
    return np.array([np.nan if v is None else float(v) for v in column])


def _path(x: FloatArray, y: FloatArray, there: NDArray[np.bool_]) -> str:
    pieces, pen = [], False
    for at, up, present in zip(x, y, there, strict=True):
        if present:
            pieces.append(f"{'L' if pen else 'M'}{at:.1f} {up:.1f}")
        pen = bool(present)
    return "".join(pieces)


def _area(frame: Frame, x: FloatArray, low: FloatArray, high: FloatArray) -> str:
    """Return the outline of the middle half; each unbroken stretch is closed by itself."""
    there = ~np.isnan(low)
    starts = np.flatnonzero(np.diff(np.concatenate(([False], there, [False])).astype(np.int8)))
    outline = []
    for begin, end in starts.reshape(-1, 2):
        top, under = frame.y(high[begin:end]), frame.y(low[begin:end])
        points = [*zip(x[begin:end], top, strict=True), *zip(x[begin:end][::-1], under[::-1], strict=True)]
        outline.append("M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points) + "z")
    return "".join(outline)


def _alt(band: BandEntry) -> str:
    middle, last = len(band.offset) // 2, len(band.offset) - 1
    said = f"loss of {plural(band.runs, 'run')} over its median before the onset: {figure(band.median[middle])} there"
    return f"{said}, {figure(band.median[last])} at the end"
