"""The report for people at a terminal; plain lines when it goes anywhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO

from trainscope.core.run import Run
from trainscope.report.chapters import Chapter, chapters
from trainscope.report.comparisons import compared, is_notable
from trainscope.report.document import Baseline, Document, ErrorEntry, FindingEntry, RunEntry, SkippedEntry
from trainscope.report.gate import headline
from trainscope.report.lookup import series_of
from trainscope.report.sparkline import marked_columns, sparkline
from trainscope.report.text import figure, label, plural, prose

STYLES: Mapping[str, str] = {"error": "bold red", "warning": "bold yellow", "info": "bold cyan"}
SIGNS: Mapping[str, str] = {"error": "✖", "warning": "▲", "info": "●"}
BANNERS: Mapping[str, str] = {
    "pass": "bold black on green",
    "fail": "bold white on red",
    "error": "bold black on yellow",
    "not_gated": "bold black on cyan",
}
WORDS: Mapping[str, str] = {"pass": "PASS", "fail": "FAIL", "error": "CANNOT JUDGE", "not_gated": "NOT GATED"}
INDENT = 12
"""Columns before the body of a row."""
RECORDED = frozenset({"recorded", "bundle"})
"""Formats of runs that trainscope recorded."""
NOT_RECORDED = "needs a run recorded with trainscope smoke, trainscope ci or the recorder"
NAMED = 4
"""Skipped detectors of one reason that are named; more would bury the findings, and the JSON has them all."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the report: a tag in the margin, and what it says."""

    tag: str
    body: str
    tag_style: str = ""
    style: str = ""
    marked: tuple[int, int] | None = None
    """Half-open range of the body to draw in `tag_style`; only for sparklines."""


def render(
    document: Document,
    runs: Mapping[str, Run],
    *,
    width: int = 100,
    color: bool = False,
    decorated: bool = False,
) -> str:
    """Return the report as text.

    Parameters
    ----------
    document : Document
    runs : mapping of run id to Run
        For the sparklines; a run that is not there gets none.
    width : int
        Columns of the terminal, where lines wrap if `decorated`.
    color : bool
        Whether to use ANSI colours.
    decorated : bool
        Whether to draw signs and sparklines and to wrap. Without it the output is plain: one thing a
        line, never wrapped, fit for a pipe or a log file.
    """
    rows = list(_rows(document, runs, width=width, decorated=decorated))
    if not decorated:
        return "\n".join(_plain(row) for row in rows) + "\n"
    return _decorated(rows, width, color)


def summary(document: Document) -> str:
    """Return the verdict in one line."""
    verdict = document.verdict
    return f"{WORDS[headline(document)]}  {verdict.reason}  ({plural(len(document.runs), 'run')})"


def render_findings(entry: RunEntry, *, color: bool = False, decorated: bool = False) -> str:
    """Return only the findings of one run, as :func:`render` shows them, without sparklines."""
    rows = [row for finding in entry.findings for row in _finding(finding, entry, None, width=100, decorated=decorated)]
    return _decorated(rows, 100, color) if decorated else "\n".join(_plain(row) for row in rows) + "\n"


def _plain(row: Row) -> str:
    if not row.tag.startswith(" "):
        return f"{row.tag}  {row.body}".rstrip()
    return f"{row.tag:<{INDENT}}{row.body}".rstrip()


def _decorated(rows: list[Row], width: int, color: bool) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    out = StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=color,
        no_color=not color,
        color_system="standard" if color else None,
        highlight=False,
        legacy_windows=False,
    )
    for row in rows:
        body = Text(row.body, style=row.style)
        if row.marked is not None:
            body.stylize(row.tag_style, *row.marked)
        if not row.tag.startswith(" "):
            console.print(Text.assemble((row.tag, row.tag_style), "  " if row.body else "", body))
            continue
        grid = Table.grid(padding=0)
        grid.add_column(width=INDENT, no_wrap=True)
        grid.add_column(overflow="fold", no_wrap=row.marked is not None)
        grid.add_row(Text(row.tag, style=row.tag_style), body)
        console.print(grid)
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n"))


def _rows(document: Document, runs: Mapping[str, Run], *, width: int, decorated: bool) -> Iterator[Row]:
    for run in document.runs:
        yield from _run(run, runs.get(run.id), width=width, decorated=decorated)
        yield Row("", "")
    if document.errors:
        yield Row("Could not be judged", "", "bold")
        for error in document.errors:
            yield _error(error)
        yield Row("", "")
    if document.baseline is not None:
        yield from _baseline(document.baseline)
        yield Row("", "")
    said = headline(document)
    word = f" {WORDS[said]} " if decorated else WORDS[said]
    yield Row(word, document.verdict.reason, BANNERS[said])


def _run(entry: RunEntry, run: Run | None, *, width: int, decorated: bool) -> Iterator[Row]:
    steps = entry.steps
    reach = f"{entry.x_axis}s {steps.first} to {steps.last}, {plural(steps.count, 'point')}"
    about = f"{label(entry.source)}, {label(entry.format)}, {reach}"
    yield Row(label(entry.name), about, "bold", "dim")
    for finding in entry.findings:
        yield from _finding(finding, entry, run, width=width, decorated=decorated)
    for chapter in chapters(entry):
        yield from _chapter(chapter, entry, decorated=decorated)
    if not entry.judged:
        yield Row("  --", "no detector judged this run", STYLES["warning"])
    elif not entry.findings:
        yield Row("  ok", f"no findings by {plural(len(entry.judged), 'detector')}", "green")
    for note in entry.notes:
        yield Row("  note", prose(note.message), "dim", "dim")
    if entry.skipped:
        yield Row("  skipped", _skipped(entry.skipped, recorded=entry.format in RECORDED), "dim", "dim")


def _finding(finding: FindingEntry, entry: RunEntry, run: Run | None, *, width: int, decorated: bool) -> Iterator[Row]:
    style = STYLES[finding.severity]
    sign = f"{SIGNS[finding.severity]} " if decorated else ""
    known = "" if finding.status is None else f" ({finding.status})"
    title = f"{prose(finding.title)} [{label(finding.detector)}]{known}{_where(finding, entry)}"
    yield Row(f"  {sign}{finding.severity}", title, style, "bold")
    yield Row("  ", prose(finding.message))
    series = None if run is None else series_of(finding, run)
    if decorated and series is not None and len(series) > 1:
        room = max(min(width - INDENT - 24, 64), 8)
        line = sparkline(series, room)
        marked = (0, 0)
        if finding.start_step is not None:
            end = finding.end_step if finding.end_step is not None else finding.start_step
            marked = marked_columns(series, finding.start_step, end, room)
        ends = f"  {figure(float(series.value[0]))} → {figure(float(series.value[-1]))}"
        yield Row("  ", line + ends, style, "dim", marked)
        if finding.start_step is not None:
            yield Row("  ", " " * marked[0] + "‾" * (marked[1] - marked[0]), style, "dim", marked)
    for fix in finding.fixes:
        yield Row("  ", f"{'→' if decorated else '-'} {prose(fix)}", "", "dim")


def _chapter(chapter: Chapter, entry: RunEntry, *, decorated: bool) -> Iterator[Row]:
    cause = f" ({chapter.cause})" if chapter.cause else ""
    yield Row("  why", f"{chapter.title}{cause}", "bold magenta", "bold")
    for step, stage, text in chapter.events:
        yield Row("  ", f"{entry.x_axis} {step:>6}  {stage:<10}  {text}")
    if chapter.more:
        yield Row("  ", f"and {plural(chapter.more, 'more sign')} in the document", "", "dim")
    if chapter.place:
        yield Row("  ", chapter.place)
    for other in chapter.others:
        yield Row("  ", f"or {other}", "", "dim")
    if chapter.missing:
        yield Row("  ", f"not recorded: {chapter.missing}", "", "dim")
    for fix in chapter.fixes:
        yield Row("  ", f"{'→' if decorated else '-'} {fix}", "", "dim")


def _baseline(baseline: Baseline) -> Iterator[Row]:
    yield Row("Baseline", f"{label(baseline.name)}, {plural(baseline.runs, 'run')}", "bold", "dim")
    for fixed in baseline.fixed:
        yield Row("  fixed", f"{prose(fixed.title)} [{label(fixed.detector)}]", "green")
    shown = [line for line in baseline.comparisons if is_notable(line)]
    for line in shown:
        yield Row("  compared", compared(line), "dim", "dim")
    rest = len(baseline.comparisons) - len(shown)
    if rest:
        what = "other comparison" if shown else "comparison"
        yield Row("  compared", f"{plural(rest, what)} within their margins", "dim", "dim")


def _where(finding: FindingEntry, entry: RunEntry) -> str:
    parts = [label(part) for part in (finding.metric, finding.layer) if part is not None]
    start, end = finding.start_step, finding.end_step
    if start is not None:
        single = end is None or end == start
        parts.append(f"{entry.x_axis} {start}" if single else f"{entry.x_axis}s {start} to {end}")
    return f"  {', '.join(parts)}" if parts else ""


def _skipped(skipped: list[SkippedEntry], *, recorded: bool) -> str:
    """Return the skipped detectors, those with one reason together, and only their number where they are many."""
    reasons: dict[str, list[str]] = {}
    for one in skipped:
        # Whoever has a plain log need not read in five ways that it is one.
        reason = NOT_RECORDED if one.kind == "recording" and not recorded else one.reason
        reasons.setdefault(prose(reason), []).append(label(one.detector))
    return "; ".join(
        f"{', '.join(names) if len(names) <= NAMED else plural(len(names), 'detector')}: {reason}"
        for reason, names in reasons.items()
    )


def _error(error: ErrorEntry) -> Row:
    where = label(error.source) + (f":{error.line}" if error.line is not None else "")
    return Row("  error", f"{where}: {prose(error.reason)}", STYLES["error"])
