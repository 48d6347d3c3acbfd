"""What a chart shows, in words and numbers: for those who cannot see it, and beside it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainscope.core.metrics import CANONICAL
from trainscope.core.run import Series
from trainscope.report.axis import Axis
from trainscope.report.text import figure, label, plural

_UNITLESS = ("1", "")


def unit_of(name: str) -> str:
    """Return the unit of a metric to put beside its name; nothing of one that is a pure number or has many."""
    unit = CANONICAL[name].unit if name in CANONICAL else ""
    return "" if unit in _UNITLESS or " " in unit else unit


def describe(series: Series, marked: Sequence[str], *, x_name: str, log: bool) -> str:
    """Return a chart's text alternative: the same facts, in words and numbers."""
    name = label(series.name)
    if not len(series):
        return f"{name}: no value in this range."
    finite = series.finite()
    head = f"{name} over {x_name}s {series.step[0]} to {series.step[-1]}, {plural(len(series), 'value')}"
    head += ", log scale." if log else "."
    if not len(finite):
        return f"{head} All values are NaN or infinite."
    least, most = int(np.argmin(finite.value)), int(np.argmax(finite.value))
    parts = [
        head,
        f"Starts at {figure(float(finite.value[0]))}, ends at {figure(float(finite.value[-1]))};",
        f"least {figure(float(finite.value[least]))} at {x_name} {finite.step[least]},",
        f"greatest {figure(float(finite.value[most]))} at {x_name} {finite.step[most]}.",
    ]
    if len(finite) < len(series):
        parts.append(f"{plural(len(series) - len(finite), 'value')} NaN or infinite.")
    parts += [f"Marked: {title}." for title in marked]
    return " ".join(parts)


def hints(series: Sequence[Series], axis: Axis) -> tuple[str, ...]:
    """Return what the eye should know: unit, log scale, values beyond the axis, values that are no number."""
    values = np.concatenate([s.value for s in series])
    finite = values[np.isfinite(values)]
    outside = int(np.count_nonzero((finite > axis.high) | (finite < axis.low)))
    told = [unit for unit in dict.fromkeys(unit_of(s.name) for s in series) if unit]
    told += ["log scale"] if axis.log else []
    if outside:
        told.append(f"{plural(outside, 'value')} beyond the axis")
    if len(finite) < len(values):
        told.append(f"{len(values) - len(finite)} NaN or infinite")
    return tuple(told)
