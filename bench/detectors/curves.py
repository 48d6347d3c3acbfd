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
BEST, LEAST_RATE = "best of sixteen shipped rules", 0.03
"""What is drawn as a line; where no false alarm at all is drawn on the logarithmic axis."""
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
    """Write the curves (HTML, SVG or PNG by the name of the file), a panel a fault: the best rule, and ours as points.

    Of the rules only the best one at each rate is drawn: sixteen lines would hide what is compared.
    """
    import altair as alt

    best: dict[tuple[str, float], dict[str, Any]] = {}
    for row in rows:
        key = (row["fault"], row["false alarms per 10,000 steps"])
        if row["rule"] in OURS or row["delay"] is None:
            continue
        if key not in best or row["delay"] < best[key]["delay"]:
            best[key] = row
    shown = [row | {"who": BEST} for row in best.values()]
    shown += [row | {"who": row["rule"]} for row in rows if row["rule"] in OURS]
    for row in shown:
        row["rate"] = max(row.pop("false alarms per 10,000 steps"), LEAST_RATE)
    x = alt.X(
        "rate:Q",
        scale=alt.Scale(type="log", domain=[LEAST_RATE, RATES[-1]]),
        axis=alt.Axis(values=[LEAST_RATE, *RATES], format="~g", title="false alarms per 10,000 steps"),
    )
    y = alt.Y("delay:Q", scale=alt.Scale(domain=[0, MISSED]), title="mean delay, steps")
    who = alt.Color("who:N", scale=alt.Scale(domain=[BEST, *OURS], range=["#888888", "#d95f02", "#1b6ca8"]), title=None)
    base = alt.Chart(alt.Data(values=shown)).encode(x=x, y=y, color=who, tooltip=["rule:N", "delay:Q", "found:Q"])
    line = base.transform_filter(alt.datum.who == BEST).mark_line(point=True)
    marks = base.transform_filter(alt.datum.who != BEST).mark_point(size=120, filled=True, opacity=1)
    chart = (line + marks).properties(width=190, height=120)
    faceted = chart.facet(
        facet=alt.Facet(
            "fault:N", title=None, sort=list(FAULTS), header=alt.Header(labelAnchor="start", labelBaseline="middle")
        ),
        columns=4,
    )
    faceted.configure(background="white").configure_legend(orient="top", labelLimit=400).save(str(path))
