"""What a summary and a comment say of a check, as pieces that can be left out one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from trainscope.core.positions import ranges
from trainscope.core.run import Series
from trainscope.github.artifact import Bundle
from trainscope.github.result import CheckResult
from trainscope.report.chapters import chapters
from trainscope.report.document import Document, FindingEntry, RunEntry
from trainscope.report.gate import fails, severity_of
from trainscope.report.markdown import SIGNS, VERDICTS, cell, code, escape, finding_lines, row
from trainscope.report.sparkline import sparkline
from trainscope.report.text import figure, label, plural, printable, shorten
from trainscope.site.bundle import Curve

MAX_RUNS = 8
"""Runs with a curve and a plan of their own."""
MAX_FIXED = 10
MAX_ROWS = 40
"""Findings in the table; each of the others is counted."""
SPARK_WIDTH = 60
_VALUES = ("value", "after", "last", "level", "first", "share", "tensors", "steps", "points")
"""Evidence that stands for a finding in a table, the best first."""


@dataclass(frozen=True, slots=True)
class Links:
    """Where to look further; addresses are our own, never from a document."""

    run_url: str
    site_url: str = ""
    conclusion: str = ""
    """How the run ended that a later one reports on, where it is not what the document says."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """A report in Markdown, in pieces."""

    head: str
    """Verdict, commit, baseline, curves: always shown."""
    rows: tuple[str, ...]
    """Findings as rows of a table, the worst first."""
    details: tuple[str, ...]
    """The same findings in full, in the same order."""
    foot: str


def pieces_of(bundle: Bundle, links: Links) -> Pieces:
    """Return the report on a check."""
    document = bundle.document
    pairs = [] if document is None else _ranked(document)
    several = document is not None and len(document.runs) > 1
    return Pieces(
        head="\n".join(_head(bundle, links)),
        rows=tuple(_row(finding, run, several=several) for run, finding in pairs),
        details=tuple("\n".join(finding_lines(finding, run)).rstrip() for run, finding in pairs),
        foot="\n".join(_foot(bundle)),
    )


def table(rows: tuple[str, ...], hidden: int) -> str:
    """Return the table of findings; `hidden` of them are not in it."""
    if not rows:
        return ""
    head = row(("", "Finding", "Step", "Value", "Score", "First layer", "")), row(("---",) * 7)
    more = [f"\nand {plural(hidden, 'more finding')} in the report"] if hidden else []
    return "\n".join([*head, *rows, *more])


def _ranked(document: Document) -> list[tuple[RunEntry, FindingEntry]]:
    """Return findings with their runs: what fails first, then by severity, new before known."""
    verdict = document.verdict
    pairs = [(run, finding) for run in document.runs for finding in run.findings]
    return sorted(
        pairs,
        key=lambda p: (
            not fails(p[1], verdict.fail_on, verdict.gate),
            -severity_of(p[1]),
            p[1].status == "known",
        ),
    )


def _head(bundle: Bundle, links: Links) -> Iterator[str]:
    result, document = bundle.result, bundle.document
    judged = document is not None and document.verdict.status == result.verdict
    reason = document.verdict.reason if judged and document is not None else result.reason or "nothing was judged"
    yield f"## {VERDICTS[result.verdict]}: {escape(reason)}"
    yield ""
    about = [f"check {code(result.key)}"] if result.key != "default" else []
    about += [f"commit {code(result.head[:10])}"] if result.head else []
    about += [f"[workflow run]({links.run_url})"]
    about += [f"[site]({links.site_url})"] if links.site_url else []
    yield " · ".join(about)
    yield ""
    if links.conclusion:
        yield f"⚠️ The workflow run ended with {code(links.conclusion)}, whatever this report says."
        yield ""
    yield from _baseline(result, document)
    if not judged and result.output:
        yield from _output(result)
    if document is not None:
        yield from _errors(document)
        for run in document.runs[:MAX_RUNS]:
            yield from _run(run, bundle)
        if len(document.runs) > MAX_RUNS:
            yield f"and {plural(len(document.runs) - MAX_RUNS, 'more run')} in the report"
            yield ""
        yield from _fixed(document)


def _baseline(result: CheckResult, document: Document | None) -> Iterator[str]:
    source, branch = result.baseline, result.data_branch
    if source is not None:
        distance = f", {plural(source.distance, 'commit')} before {code(source.start[:10])}" if source.distance else ""
        where = f"{code(source.sha[:10])}{distance}, recorded on {code(branch)}"
    elif document is not None and document.baseline is not None:
        where = escape(label(document.baseline.name))
    elif result.baseline_note:
        yield f"No baseline: {escape(result.baseline_note)}."
        yield ""
        return
    else:
        return
    if document is None or document.baseline is None:
        yield f"Nothing was compared with the baseline, {where}."
    else:
        statuses = [f.status for run in document.runs for f in run.findings]
        new, known = statuses.count("new"), statuses.count("known")
        yield f"Compared with {where}: **{new} new**, {known} known, {len(document.baseline.fixed)} fixed."
    yield ""


def _output(result: CheckResult) -> Iterator[str]:
    lines = [printable(line) for line in result.output]
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield "The command's last lines:"
    yield ""
    yield from (f"{fence}text", *lines, fence, "")


def _errors(document: Document) -> Iterator[str]:
    for error in document.errors[:MAX_RUNS]:
        line = "" if error.line is None else f" line {error.line}"
        yield f"- ⚠️ {code(error.source)}{line}: {escape(error.reason)}"
    if document.errors:
        yield ""


def _run(run: RunEntry, bundle: Bundle) -> Iterator[str]:
    record = next((r for r in bundle.records if r.id == run.id), None)
    drawn = spark_of(record.curves[0]) if record is not None and record.curves else ""
    name = f"**{escape(label(run.name, 60))}**"
    if drawn and record is not None:
        yield f"{name} · {code(label(record.curves[0].name, 40))} {code(drawn)}"
    else:
        steps = "" if run.steps.last is None else f" · {run.x_axis}s {run.steps.first} to {run.steps.last}"
        yield f"{name}{steps}"
    yield ""
    for chapter in [c for c in chapters(run) if c.cause][:2]:
        cause = f"**{escape(chapter.cause)}**: " if chapter.cause else ""
        yield f"- 🔎 {cause}{escape(chapter.title)}"
    plan = run.replay
    if plan is not None and plan.skip_batches and plan.path is not None:
        skipped = f"{plural(len(plan.skip_batches), 'batch', 'batches')} ({shorten(ranges(plan.skip_batches), 80)})"
        command = f"trainscope smoke --replay {label(plan.path, 60)} -- COMMAND"
        yield f"- ⏪ {code(command)} trains again without {skipped}"
    yield ""


def _fixed(document: Document) -> Iterator[str]:
    fixed = [] if document.baseline is None else document.baseline.fixed
    for one in fixed[:MAX_FIXED]:
        yield f"- ✅ fixed: {escape(label(one.title))} ({code(one.detector)})"
    if len(fixed) > MAX_FIXED:
        yield f"- and {len(fixed) - MAX_FIXED} more fixed"
    if fixed:
        yield ""


def _row(finding: FindingEntry, run: RunEntry, *, several: bool) -> str:
    title = cell(finding.title) + (f" ({cell(run.name, 40)})" if several else "")
    step = finding.peak_step if finding.peak_step is not None else finding.start_step
    score = finding.evidence.get("score")
    return row(
        (
            SIGNS[finding.severity],
            title,
            "" if step is None else str(step),
            _value(finding.evidence),
            "" if score is None else cell(figure(score), 20),
            cell(_layer(finding, run), 60),
            finding.status or "",
        )
    )


def _value(evidence: Mapping[str, object]) -> str:
    name = next((n for n in _VALUES if isinstance(evidence.get(n), (int, float, str))), None)
    if name is None:
        return ""
    found = evidence[name]
    assert isinstance(found, (int, float, str))
    shown = cell(figure(found), 30)
    return shown if name == "value" else f"{name} {shown}"


def _layer(finding: FindingEntry, run: RunEntry) -> str:
    if finding.layer is not None:
        return finding.layer
    step = finding.start_step
    found = next((i for i in run.incidents if step is not None and i.onset <= step <= i.end), None)
    return "-" if found is None else found.parameter or found.layer or "-"


def spark_of(curve: Curve) -> str:
    """Return the line of a curve in block characters, its spikes included."""
    values = curve.high if curve.high else curve.middle
    if not curve.step or len(values) != len(curve.step) or any(a >= b for a, b in pairwise(curve.step)):
        return ""
    points = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    return sparkline(Series(curve.name, np.array(curve.step, dtype=np.int64), points), SPARK_WIDTH)


def _foot(bundle: Bundle) -> Iterator[str]:
    document = bundle.document
    if document is None:
        return
    idle = {s.detector for run in document.runs for s in run.skipped}
    judged = {d for run in document.runs for d in run.judged}
    said = f"{plural(len(judged), 'detector')} and comparisons judged, {len(idle - judged)} had nothing to judge"
    yield f"<sub>{said}.</sub>"
