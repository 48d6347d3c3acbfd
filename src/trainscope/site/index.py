"""The list of runs: one row a run for the page, for the browser and for other programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainscope.core.run import FloatArray
from trainscope.report.case_document import ClusterEntry, Survey
from trainscope.report.document import ErrorEntry, Number
from trainscope.report.gate import count
from trainscope.report.text import label, plural
from trainscope.report.tiles import headline
from trainscope.site.bundle import Curve, Record
from trainscope.site.charts import Chart
from trainscope.site.pages import moment

SHOWN = 60
"""Rows that stand in the page itself; the browser has the rest from ``runs.js``."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
SPARK = 40
"""Letters of a small curve: each a share of the steps, its height one of 64; ``!`` NaN or infinity, ``.`` nothing."""


@dataclass(frozen=True, slots=True)
class Row:
    """One run in the list."""

    id: str
    name: str
    status: str
    started: str | None
    started_at: int | None
    branch: str | None
    commit: str | None
    steps: int | None
    loss: Number | None
    metric: str | None
    counts: tuple[tuple[str, int], ...]
    found: str
    """Detectors that found something, for the filter."""
    spark: str
    path: str
    bad_path: str
    archived: bool

    @property
    def href(self) -> str:
        """Address of the run's page, from the site's root."""
        return f"run.html#{self.id}" if self.archived else f"runs/{self.id}/index.html"


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Runs that broke alike, with links to them."""

    entry: ClusterEntry
    members: tuple[Row, ...]
    more: int
    chart: Chart | None
    member: Row | None
    stable: Row | None


@dataclass(frozen=True, slots=True)
class IndexView:
    """What the list of runs shows."""

    rows: tuple[Row, ...]
    summary: str
    errors: tuple[ErrorEntry, ...]
    survey: Survey | None
    clusters: tuple[ClusterView, ...]
    """Of at least two runs."""
    alone: tuple[ClusterView, ...]
    """Of one run."""

    @property
    def count(self) -> int:
        """How many runs there are."""
        return len(self.rows)

    @property
    def shown(self) -> tuple[Row, ...]:
        """Rows that stand in the page itself."""
        return self.rows[:SHOWN]


def newest_first(records: Sequence[Record]) -> list[Record]:
    """Return records by when they started, the newest first; those that do not say come last, by name."""
    return sorted(records, key=lambda r: (-(r.about.started or 0), r.entry.name, r.id))


def row_of(record: Record) -> Row:
    """Return the row of a run."""
    entry, main = record.entry, headline(record.entry)
    counts = count(entry.findings)
    spark = sparkline(record.curves[0]) if record.curves else ""
    path, bad = spark_paths(spark)
    return Row(
        id=record.id,
        name=label(entry.name, 120),
        status=record.verdict.status,
        started=None if record.about.started is None else moment(record.about.started),
        started_at=record.about.started,
        branch=None if record.about.branch is None else label(record.about.branch, 60),
        commit=None if record.about.commit is None else label(record.about.commit, 40)[:9],
        steps=entry.steps.last,
        loss=None if main is None else main.last,
        metric=None if main is None else label(main.name, 60),
        counts=(("error", counts.error), ("warning", counts.warning), ("info", counts.info)),
        found=" ".join(dict.fromkeys(f.detector for f in entry.findings)),
        spark=spark,
        path=path,
        bad_path=bad,
        archived=record.archived,
    )


def summary_of(rows: Sequence[Row]) -> str:
    """Return ``"12 runs: 3 fail, 9 pass"``."""
    words = (("fail", "fail"), ("error", "could not be judged"), ("pass", "pass"))
    tally = {status: sum(r.status == status for r in rows) for status, _ in words}
    said = ", ".join(f"{tally[status]} {word}" for status, word in words if tally[status])
    return plural(len(rows), "run") + (f": {said}" if said else "")


def runs_script(rows: Sequence[Row]) -> str:
    """Return ``runs.js``: the list in columns, as the pages read it."""
    columns = {
        "id": [r.id for r in rows],
        "name": [r.name for r in rows],
        "status": [r.status for r in rows],
        "started": [r.started_at for r in rows],
        "branch": [r.branch for r in rows],
        "commit": [r.commit for r in rows],
        "steps": [r.steps for r in rows],
        "loss": [r.loss for r in rows],
        **{key: [dict(r.counts)[key] for r in rows] for key in ("error", "warning", "info")},
        "found": [r.found for r in rows],
        "spark": [r.spark for r in rows],
        "archived": [r.archived for r in rows],
    }
    return f"tsRuns({_script_safe(columns)});\n"


def runs_json(rows: Sequence[Row], title: str) -> str:
    """Return ``runs.json``: the list for other programs, one object a run."""
    listed = [
        {
            "id": r.id,
            "name": r.name,
            "status": r.status,
            "started": r.started_at,
            "branch": r.branch,
            "commit": r.commit,
            "last_step": r.steps,
            "metric": r.metric,
            "last": r.loss,
            "counts": dict(r.counts),
            "detectors": r.found.split(),
            "archived": r.archived,
            "page": r.href,
            "findings": f"runs/{r.id}/findings.json",
        }
        for r in rows
    ]
    return json.dumps({"schema_version": "1.0", "title": title, "runs": listed}, indent=1, allow_nan=False) + "\n"


def sparkline(curve: Curve) -> str:
    """Return a curve in letters, on a scale from the least value to the 99th percentile."""
    if not curve.step:
        return ""
    first, last = curve.step[0], curve.step[-1]
    at = np.minimum((np.array(curve.step) - first) / max(last - first, 1) * SPARK, SPARK - 1).astype(int)
    columns = [curve.middle, curve.low or curve.middle, curve.high or curve.middle]
    table = np.array([[np.nan if v is None else v for v in column] for column in columns], dtype=np.float64)
    finite = table[np.isfinite(table)]
    if not len(finite):
        return "!" * SPARK
    low, high, middle = float(finite.min()), float(np.percentile(finite, 99)), float(np.median(finite))
    if len(curve.step) < SPARK:
        return "".join("!" if v is None else _letter(np.array([v]), low, high, middle) for v in curve.middle)
    broken = {int(min((s - first) / max(last - first, 1) * SPARK, SPARK - 1)) for s in curve.broken}
    letters = (_letter(table[:, at == i], low, high, middle) for i in range(SPARK))
    return "".join("!" if i in broken else letter for i, letter in enumerate(letters))


def _letter(values: FloatArray, low: float, high: float, middle: float) -> str:
    """Return the letter of a share of the steps: of the value furthest from the median, so that spikes stay."""
    some = values[np.isfinite(values)]
    if not len(some):
        return "."
    value = float(some[np.argmax(np.abs(some - middle))])
    share = (value - low) / (high - low) if high > low else 0.0
    return LETTERS[round(min(max(share, 0.0), 1.0) * 63)]


def spark_paths(letters: str) -> tuple[str, str]:
    """Return the line of a small curve, and the ticks where it is not finite, in a picture of 112 by 26."""
    line, bad, pen = [], [], "M"
    for i, letter in enumerate(letters):
        x = f"{i * 110 / max(len(letters) - 1, 1) + 1:.1f}".removesuffix(".0")
        if letter == "!":
            bad.append(f"M{x} 21v5")
        if letter in "!.":
            pen = "M"
            continue
        line.append(f"{pen}{x} {24.5 - LETTERS.index(letter) / 63 * 23:.1f}")
        pen = "L"
    return "".join(line), "".join(bad)


def _script_safe(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
