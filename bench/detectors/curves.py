"""Detection against false alarms: what each rule finds at any threshold, ours at their defaults."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from alarms import delay_at, threshold_for
from compare import OURS, Healthy, Planted, found
from intervals import rate
from measure import delays
from rules import RULES
from truth import FAULTS

RATES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""False alarms per 10,000 steps."""
SIZE = 8.0
"""Sigmas of the faults that are drawn."""
MISSED = 100.0
"""A fault that is not found counts as a delay of as many steps."""


def points(healthy: Healthy, planted: Planted) -> list[dict[str, Any]]:
    """Return a row a rule, fault and rate: share found within 100 steps, and mean delay with misses at 100."""
    steps = sum(p["steps"] for p in healthy.values())
    rows = []
    for fault in FAULTS:
        pieces = [p for _, f, size, p in planted if f == fault and size == SIZE]
        for rule in RULES:
            peaks = [run for p in healthy.values() for run in p["peaks"][rule.name]]
            for per in RATES:
                threshold = threshold_for(peaks, int(per * steps / 10_000))
                values = [delay_at(row, threshold) for p in pieces for row in p["levels"][rule.name]]
                rows.append(_row(fault, rule.name, per, [v for v in values if not math.isnan(v)]))
        for name in OURS:
            count = sum(int(p["ours"][name]) for p in healthy.values())
            rows.append(_row(fault, name, rate(count, steps).value, [v for p in pieces for v in delays(p[name])]))
    return rows


def _row(fault: str, name: str, per: float, values: list[float]) -> dict[str, Any]:
    cell = found(values)
    share = cell.within[-1] / cell.n if cell.n else None
    delay = sum(min(v, MISSED) for v in values) / len(values) if values else None
    return {"fault": fault, "rule": name, "false alarms per 10,000 steps": per, "found": share, "delay": delay}


def table(rows: list[dict[str, Any]]) -> str:
    """Return for each fault the smallest mean delay that any rule reaches at each rate, and ours at their own."""
    lines = [f"| fault of {SIZE:g} σ | {' | '.join(f'{r:g}' for r in RATES)} | {' | '.join(OURS)} |"]
    lines.append("| --- " * (1 + len(RATES) + len(OURS)) + "|")
    for fault in FAULTS:
        mine = [r for r in rows if r["fault"] == fault and r["delay"] is not None]
        cells = []
        for per in RATES:
            at = [r for r in mine if r["rule"] not in OURS and r["false alarms per 10,000 steps"] == per]
            best = min(at, key=lambda r: float(r["delay"]), default=None)
            cells.append("" if best is None else f"{best['delay']:.0f} ({best['rule']})")
        for name in OURS:
            one = next((r for r in mine if r["rule"] == name), None)
            rate_ = "" if one is None else f"{one['delay']:.0f} at {one['false alarms per 10,000 steps']:.2f}"
            cells.append(rate_)
        lines.append(f"| {fault} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Write the curves as one page, a panel a fault; ours are the large points."""
    import altair as alt

    data = alt.Data(values=rows)
    x = alt.X("false alarms per 10,000 steps:Q", scale=alt.Scale(type="symlog", constant=0.1))
    y = alt.Y("delay:Q", title="mean delay in steps, misses at 100")
    rules = alt.Chart(data).transform_filter(alt.FieldOneOfPredicate("rule", [r.name for r in RULES]))
    ours = alt.Chart(data).transform_filter(alt.FieldOneOfPredicate("rule", list(OURS)))
    lines = rules.mark_line(point=True).encode(x=x, y=y, color="rule:N", tooltip=["rule:N", "delay:Q", "found:Q"])
    marks = ours.mark_point(size=160, filled=True).encode(x=x, y=y, shape="rule:N", tooltip=["rule:N", "delay:Q"])
    (lines + marks).properties(width=260, height=180).facet("fault:N", columns=2).save(str(path))
