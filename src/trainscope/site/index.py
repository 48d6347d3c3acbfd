"""The list of runs: one row a run for the page, for the browser and for other programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from trainscope.report.case_document import ClusterEntry, Survey
from trainscope.report.document import ErrorEntry, Number, RunEntry
from trainscope.report.gate import count
from trainscope.report.text import label, plural
from trainscope.report.tiles import headline
from trainscope.site.bundle import Record
from trainscope.site.charts import Chart
from trainscope.site.pages import moment
from trainscope.site.sparks import spark_paths, sparkline

SHOWN = 60
"""Rows that stand in the page itself; the browser has the rest from ``runs.js``."""
ID_LETTERS = 6
MAX_PARTS = 8
"""Parts of a source, from its end, by which runs of one name are told apart."""


@dataclass(frozen=True, slots=True)
class Row:
    """One run in the list."""

    id: str
    name: str
    apart: str
    """What tells it from other runs of its name; empty where no other has it."""
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
    def absent(self) -> tuple[str, ...]:
        """Return the columns that no run has anything for."""
        return tuple(key for key in ("started", "branch", "commit") if not any(getattr(r, key) for r in self.rows))

    @property
    def shown(self) -> tuple[Row, ...]:
        """Rows that stand in the page itself."""
        return self.rows[:SHOWN]


def newest_first(records: Sequence[Record]) -> list[Record]:
    """Return records by when they started, the newest first; those that do not say come last, by name."""
    return sorted(records, key=lambda r: (-(r.about.started or 0), r.entry.name, r.id))


def rows_of(records: Sequence[Record]) -> list[Row]:
    """Return the rows of runs, in their order."""
    return [row_of(r, apart) for r, apart in zip(records, told_apart([r.entry for r in records]), strict=True)]


def told_apart(entries: Sequence[RunEntry]) -> list[str]:
    """Return what tells each run from others of its name: the part of its source where they differ, or else its id."""
    names = Counter(e.name for e in entries)
    sources = [PurePath(e.source).parts if names[e.name] > 1 else () for e in entries]
    apart = ["" if names[e.name] == 1 else e.id[:ID_LETTERS] for e in entries]
    left = [i for i, parts in enumerate(sources) if parts]
    for length in range(1, MAX_PARTS + 1):
        ends = Counter((entries[i].name, sources[i][-length:]) for i in left)
        alone = [i for i in left if len(sources[i]) >= length and ends[entries[i].name, sources[i][-length:]] == 1]
        for i in alone:
            apart[i] = label(sources[i][-length], 60)
        done = set(alone)
        left = [i for i in left if i not in done]
    return apart


def row_of(record: Record, apart: str = "") -> Row:
    """Return the row of a run."""
    entry, main = record.entry, headline(record.entry)
    counts = count(entry.findings)
    spark = sparkline(record.curves[0]) if record.curves else ""
    path, bad = spark_paths(spark)
    return Row(
        id=record.id,
        name=label(entry.name, 120),
        apart=apart,
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
        "apart": [r.apart for r in rows],
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


def _script_safe(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
