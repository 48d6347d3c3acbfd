"""The report as GitHub-flavoured Markdown, for job summaries, comments and files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from trainscope.core.run import Run
from trainscope.report.chapters import Chapter, chapters
from trainscope.report.comparisons import compared
from trainscope.report.document import Baseline, Document, FindingEntry, RunEntry
from trainscope.report.gate import count, describe, headline
from trainscope.report.text import figure, label, plural, prose

SIGNS: Mapping[str, str] = {"error": "🔴", "warning": "🟡", "info": "🔵"}
VERDICTS: Mapping[str, str] = {
    "pass": "✅ Pass",
    "fail": "❌ Fail",
    "error": "⚠️ Cannot judge",
    "not_gated": "ℹ️ Not gated",
}
MAX_EVIDENCE = 8

# Only what can mean something where it stands: the text stays readable in a raw log.
_SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])|^(?:[-+#=]|\d+(?=[.)](?:\s|$)))")
# What GitHub links by itself, whatever is escaped: @names, #1, GH-1, bare addresses.
_LINKED = re.compile(r"(?<=@)(?=\w)|(?<=#)(?=\d)|(?<=GH)(?=-\d)|(?<=://)|(?<=www)(?=\.)", re.IGNORECASE)
_INVISIBLE = "\u200b"


def escape(text: str) -> str:
    """Return `text` so that Markdown shows it as it is: no markup, no HTML, no mention, no link."""
    apart = _LINKED.sub(_INVISIBLE, prose(text).strip())
    special = _SPECIAL.sub(lambda m: m[0] + "\\" if m[0][0].isdigit() else "\\" + m[0], apart)
    return special.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def code(text: str) -> str:
    """Return `text` as a code span, where nothing is markup; not for table cells, which pipes cut."""
    shown = label(text)
    fence = "`" * (max((len(run) for run in re.findall(r"`+", shown)), default=0) + 1)
    pad = " " if shown.startswith(("`", " ")) or shown.endswith(("`", " ")) else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def row(cells: Sequence[str]) -> str:
    """Return one row of a table; the cells are Markdown already."""
    return f"| {' | '.join(cells)} |"


def cell(text: str, limit: int = 80) -> str:
    """Return a name as a cell."""
    return escape(label(text, limit))


def render(document: Document, runs: Mapping[str, Run]) -> str:  # noqa: ARG001 - the renderers' signature
    """Return the report as Markdown."""
    return "\n".join(_lines(document)).rstrip() + "\n"


def _lines(document: Document) -> Iterator[str]:
    yield f"## {VERDICTS[headline(document)]}: {escape(document.verdict.reason)}"
    yield ""
    if len(document.runs) > 1:
        yield "| Run | Steps | Findings |"
        yield "| --- | ---: | --- |"
        for run in document.runs:
            last = "-" if run.steps.last is None else str(run.steps.last)
            yield f"| {_bold(run.name)} | {last} | {describe(count(run.findings))} |"
        yield ""
    if document.errors:
        yield "### ⚠️ Could not be judged"
        yield ""
        for error in document.errors:
            line = "" if error.line is None else f" line {error.line}"
            yield f"- {code(error.source)}{line}: {escape(error.reason)}"
        yield ""
    for run in document.runs:
        yield from _run(run)
    if document.baseline is not None:
        yield from _baseline(document.baseline)


def _baseline(baseline: Baseline) -> Iterator[str]:
    yield f"### Compared with {escape(label(baseline.name))} ({plural(baseline.runs, 'run')})"
    yield ""
    for fixed in baseline.fixed:
        yield f"- ✅ fixed: {escape(fixed.title)} ({code(fixed.detector)})"
    if baseline.fixed:
        yield ""
    yield from details("What was compared", [escape(compared(line)) for line in baseline.comparisons])


def _bold(name: str) -> str:
    return f"**{escape(label(name))}**"


def _run(run: RunEntry) -> Iterator[str]:
    yield f"### {escape(label(run.name))}"
    yield ""
    steps = f"{run.x_axis}s {run.steps.first} to {run.steps.last}"
    said = describe(count(run.findings)) if run.judged else "no detector judged this run"
    about = (code(run.source), escape(label(run.format)), steps, said)
    yield " · ".join(about)
    yield ""
    for finding in run.findings:
        yield from finding_lines(finding, run)
    for chapter in chapters(run):
        yield from _chapter(chapter, run)
    if run.notes:
        yield from details("Notes on the log", [escape(n.message) for n in run.notes])
    if run.skipped:
        lines = [f"{code(s.detector)}: {escape(s.reason)}" for s in run.skipped]
        yield from details(f"{plural(len(run.skipped), 'detector')} had nothing to judge", lines)


def finding_lines(finding: FindingEntry, run: RunEntry) -> Iterator[str]:
    """Yield one finding as a section."""
    known = f" _({finding.status})_" if finding.status else ""
    yield f"#### {SIGNS[finding.severity]} {escape(finding.title)}{known}"
    yield ""
    where = [code(p) for p in (finding.metric, finding.layer) if p is not None]
    start, end = finding.start_step, finding.end_step
    if start is not None:
        where.append(f"{run.x_axis} {start}" if end in (None, start) else f"{run.x_axis}s {start} to {end}")
    yield f"{finding.severity} · {' · '.join([code(finding.detector), *where])}"
    yield ""
    yield escape(finding.message)
    yield ""
    if finding.evidence:
        shown = list(finding.evidence.items())[:MAX_EVIDENCE]
        yield f"| {' | '.join(escape(label(key, 40)) for key, _ in shown)} |"
        yield f"|{' ---: |' * len(shown)}"
        cells = (v if isinstance(v, str) else figure(v) for _, v in shown)
        yield f"| {' | '.join(escape(label(cell, 60)) for cell in cells)} |"
        yield ""
    for fix in finding.fixes:
        yield f"- {escape(fix)}"
    if finding.fixes:
        yield ""


def _chapter(chapter: Chapter, run: RunEntry) -> Iterator[str]:
    yield f"#### 🔎 Why: {escape(chapter.title)}"
    yield ""
    about = [f"Cause: **{escape(chapter.cause)}**"] if chapter.cause else []
    about += [escape(chapter.place)] if chapter.place else []
    if about:
        yield " · ".join(about)
        yield ""
    yield row((run.x_axis.capitalize(), "Stage", "Sign"))
    yield row(("---:", "---", "---"))
    for step, stage, text in chapter.events:
        yield row((step, stage, escape(text)))
    if chapter.more:
        yield row(("", "", f"and {plural(chapter.more, 'more sign')} in the document"))
    yield ""
    for other in chapter.others:
        yield f"- or {escape(other)}"
    if chapter.missing:
        yield f"- not recorded: {escape(chapter.missing)}"
    for fix in chapter.fixes:
        yield f"- {escape(fix)}"
    if chapter.others or chapter.missing or chapter.fixes:
        yield ""


def details(summary: str, lines: list[str]) -> Iterator[str]:
    """Yield lines that are folded away under a summary."""
    yield f"<details><summary>{summary}</summary>"
    yield ""
    for line in lines:
        yield f"- {line}"
    yield ""
    yield "</details>"
    yield ""
