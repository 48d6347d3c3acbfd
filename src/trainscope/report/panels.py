"""Which charts a run gets, and what each shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainscope.core.metrics import LOSS_KINDS, Kind, kind
from trainscope.core.run import Run, Series
from trainscope.report.charts import Chart, Mark, draw
from trainscope.report.document import FindingEntry, RunEntry
from trainscope.report.lookup import series_of
from trainscope.report.text import label, printable, well_formed

WIDE, NARROW = 1040.0, 344.0
"""Widths at which charts are drawn: the page's own column, and a phone's."""
MAX_SMALL = 12
"""Small charts a run gets; metrics with findings come first."""
STYLES: Mapping[Kind, str] = {
    Kind.EVAL_LOSS: "eval",
    Kind.GRAD_NORM: "grad",
    Kind.LEARNING_RATE: "rate",
    Kind.DURATION: "time",
    Kind.RATE: "time",
    Kind.SCORE: "score",
    Kind.REWARD: "score",
    Kind.PROGRESS: "other",
    Kind.OTHER: "other",
}
_ORDER: tuple[Kind, ...] = (
    Kind.GRAD_NORM,
    Kind.LEARNING_RATE,
    Kind.EVAL_LOSS,
    Kind.LOSS,
    Kind.REWARD,
    Kind.SCORE,
    Kind.LOSS_PART,
    Kind.ADVERSARIAL_LOSS,
    Kind.RL_LOSS,
    Kind.RATE,
    Kind.DURATION,
    Kind.OTHER,
)


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart with its name, in the two widths of the page."""

    title: str
    wide: Chart
    narrow: Chart


@dataclass(frozen=True, slots=True)
class Panels:
    """All charts of one run."""

    main: Panel | None
    small: tuple[Panel, ...]
    left_out: int
    """Metrics without a chart."""
    findings: tuple[Panel | None, ...]
    """One for each finding, None where it is about no single metric."""


def style_of(name: str) -> str:
    """Return the style class of a metric."""
    return STYLES.get(kind(name), "loss")


def panels_for(entry: RunEntry, run: Run) -> Panels:
    """Lay out the charts of one run.

    Parameters
    ----------
    entry : RunEntry
        Its findings are marked, numbered as in the report.
    run : Run
        Its points.
    """
    main = primary(run)
    marks = _marks(entry)
    small = [s for s in ranked(entry, run) if main is None or s.name != main.name]
    overlay = run.get("eval/loss") if main is not None and main.name == "train/loss" else None
    return Panels(
        main=None if main is None else _main(main, overlay, marks, entry),
        small=tuple(_small(s, _about(marks, well_formed(s.name)), entry) for s in small[:MAX_SMALL]),
        left_out=max(len(small) - MAX_SMALL, 0),
        findings=tuple(_evidence(f, n, entry, run) for n, f in enumerate(entry.findings, 1)),
    )


def primary(run: Run) -> Series | None:
    """Return the series that tells most of the run: its training loss, or what comes nearest."""
    for name in ("train/loss", "eval/loss", "train/reward"):
        found = run.get(name)
        if found is not None:
            return found
    some = [s for s in run.series.values() if len(s)]
    losses = [s for s in some if kind(s.name) in LOSS_KINDS or kind(s.name) == Kind.REWARD]
    return max(losses or some, key=len, default=None)


def ranked(entry: RunEntry, run: Run) -> list[Series]:
    """Return the series worth a chart: those with findings, then by what they measure, then what never changes."""
    found = {f.metric for f in entry.findings}
    placed = []
    for series in run.series.values():
        measured, is_found = kind(series.name), well_formed(series.name) in found
        if len(series) and (measured in _ORDER or is_found):
            place = _ORDER.index(measured) if measured in _ORDER else len(_ORDER)
            placed.append((not is_found, measured is Kind.OTHER and _is_constant(series), place, series))
    return [series for *_, series in sorted(placed, key=lambda r: r[:3])]


def _is_constant(series: Series) -> bool:
    """Tell whether all points are the same number."""
    return bool((series.value == series.value[0]).all())


def _marks(entry: RunEntry) -> list[tuple[str | None, Mark]]:
    marks = []
    for n, finding in enumerate(entry.findings, 1):
        if finding.start_step is not None and finding.layer is None:
            marks.append((finding.metric, mark_of(finding, n, entry.x_axis)))
    return marks


def mark_of(finding: FindingEntry, n: int, x_name: str) -> Mark:
    """Return the steps of a finding that has some, with its number."""
    start = finding.start_step or 0
    end = finding.end_step if finding.end_step is not None else start
    where = f"{x_name} {start}" if end == start else f"{x_name}s {start} to {end}"
    title = f"finding {n}, {finding.severity}, {printable(finding.title)}, {where}"
    return Mark(start, max(end, start), finding.severity, str(n), title)


def _about(marks: Sequence[tuple[str | None, Mark]], metric: str) -> list[Mark]:
    """Return the marks of one metric."""
    return [mark for about, mark in marks if about == metric]


def _main(main: Series, overlay: Series | None, marks: Sequence[tuple[str | None, Mark]], entry: RunEntry) -> Panel:
    shown = [(main, style_of(main.name))]
    if overlay is not None:
        shown.append((overlay, "eval"))
    # The main chart is the map of the report: every finding is on it, whatever it is about.
    every = [mark for _, mark in marks]
    return Panel(
        label(main.name),
        draw(shown, every, width=WIDE, height=300, x_name=entry.x_axis),
        draw(shown, every, width=NARROW, height=240, x_name=entry.x_axis),
    )


def _small(series: Series, marks: Sequence[Mark], entry: RunEntry) -> Panel:
    # The shape of a schedule is what one looks for, and it is drawn in straight lines.
    allow_log = kind(series.name) != Kind.LEARNING_RATE
    chart = draw(
        [(series, style_of(series.name))],
        marks,
        width=NARROW,
        height=170,
        x_name=entry.x_axis,
        allow_log=allow_log,
    )
    return Panel(label(series.name), chart, chart)


def _evidence(finding: FindingEntry, n: int, entry: RunEntry, run: Run) -> Panel | None:
    """Return a close look at where the finding is."""
    series = series_of(finding, run)
    if series is None or finding.start_step is None:
        return None
    mark = mark_of(finding, n, entry.x_axis)
    chart = draw(
        [(series, style_of(series.name))],
        [Mark(mark.start, mark.end, mark.severity, "", mark.title)],
        width=NARROW,
        height=150,
        x_name=entry.x_axis,
        window=window_around(series, mark.start, mark.end),
        # The outlier is what this chart is about.
        allow_cap=False,
    )
    return Panel(label(series.name), chart, chart)


def window_around(series: Series, start: int, end: int) -> tuple[int, int] | None:
    """Return the steps around a range: three times its length, at least forty points; None for all."""
    first, last = int(series.step[0]), int(series.step[-1])
    spacing = max((last - first) / max(len(series) - 1, 1), 1)
    room = max(end - start, 20 * spacing)
    begin, stop = max(int(start - room), first), min(int(end + room), last)
    return None if stop - begin > 0.6 * (last - first) or stop <= begin else (begin, stop)
