"""What the page of one run shows, from its record alone: pure, no file and no clock."""

from __future__ import annotations

import datetime
from dataclasses import replace

from trainscope.core.positions import ranges
from trainscope.replay.config import ReplayConfig
from trainscope.report.charts import Mark
from trainscope.report.document import SCHEMA_VERSION, Document, FindingEntry, Tool
from trainscope.report.gate import count
from trainscope.report.html import WORDS
from trainscope.report.panels import mark_of
from trainscope.report.text import figure, label, plural
from trainscope.report.tiles import tiles_for
from trainscope.site.bundle import Curve, Record, Rows
from trainscope.site.charts import NARROW, line_chart
from trainscope.site.maps import STARVED_LOADED, heat_chart
from trainscope.site.story import incidents_of
from trainscope.site.views import FindingView, LayerRow, MapView, ReplayView, RunView
from trainscope.site.weights import weight_rows

STRIPS = 5
"""Curves drawn over the whole width, under the main one; the others are small."""
STATISTIC_NAMES = {
    "grad_l2_norm": "Gradient norm",
    "act_kurtosis": "Excess kurtosis of activations",
    "update_ratio": "Update over weight norm",
    "attn_logit_max": "Greatest attention logit",
    "rms_t": "Gradient over the optimizer's estimate (RMS_t)",
    "act_max_abs": "Greatest activation",
    "weight_l2_norm": "Weight norm",
    "attn_entropy": "Entropy of attention",
    "act_dead_fraction": "Share of dead units",
    "grad_nan_inf_ratio": "Share of NaN and infinity in gradients",
}
SHARE_SCALE = ((0.0, "1/8"), (0.5, "even share"), (1.0, "8 x"))


def run_view(record: Record) -> RunView:
    """Return what the page of a run shows."""
    entry = record.entry
    x_name = entry.x_axis
    marks = [mark_of(f, n, x_name) for n, f in enumerate(entry.findings, 1) if f.start_step is not None]
    of_metric = {
        c.name: [m for m, f in _marked(record) if f.metric == c.name and f.layer is None] for c in record.curves
    }
    span = _span(record)
    curves = list(enumerate(record.curves))
    main, overlay = _main(record)
    rest = curves[1 if main is not None else 0 :]
    wide, small = rest[:STRIPS], rest[STRIPS:]
    counts = count(entry.findings)
    incidents = incidents_of(record)
    return RunView(
        record=record,
        title=label(entry.name, 80),
        word=WORDS[record.verdict.status],
        lead=record.summary,
        counts=(("error", counts.error), ("warning", counts.warning), ("info", counts.info)),
        tiles=tiles_for(entry),
        facts=_facts(record),
        marks=tuple(marks),
        findings=tuple(_finding(n, f, record) for n, f in enumerate(entry.findings, 1)),
        incidents=incidents,
        main=None
        if main is None
        else line_chart("main", main, marks, height=280, x_name=x_name, overlay=overlay, domain=span, data="curves.0"),
        strips=tuple(
            line_chart(f"strip-{i}", c, of_metric[c.name], height=112, x_name=x_name, domain=span, data=f"curves.{i}")
            for i, c in wide
        ),
        small=tuple(
            line_chart(
                f"small-{i}",
                c,
                of_metric[c.name],
                height=150,
                widths=(NARROW,),
                x_name=x_name,
                domain=span,
                data=f"curves.{i}",
            )
            for i, c in small
        ),
        layers=tuple(_layer_map(record, i) for i in range(len(record.layers))),
        weights=weight_rows(record),
        weight_steps=tuple(sorted({step for w in record.weights for step in w.step})),
        shares=tuple(_share_map(record, i) for i in range(len(record.shares))),
        replay=_replay(record, main, span),
        judged=_judged(record),
        left_out=", ".join(f"{n} {key}" for key, n in sorted(record.left_out.items())),
    )


def findings_json(record: Record) -> str:
    """Return the report document of one run: ``findings.json``."""
    counts = count(record.entry.findings)
    document = Document(
        schema_version=SCHEMA_VERSION,
        tool=Tool(name="trainscope", version=record.tool),
        verdict=record.verdict,
        counts=counts,
        runs=[record.entry],
    )
    return document.to_json()


def replay_json(record: Record) -> str | None:
    """Return ``replay_config.json``, None for a run without a plan."""
    return None if record.replay is None else record.replay.to_json()


def moment(seconds: int) -> str:
    """Return a date and time in UTC: ``2026-11-28 14:02``."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M")


def _marked(record: Record) -> list[tuple[Mark, FindingEntry]]:
    x_name = record.entry.x_axis
    return [(mark_of(f, n, x_name), f) for n, f in enumerate(record.entry.findings, 1) if f.start_step is not None]


def _span(record: Record) -> tuple[int, int] | None:
    """Return the steps that all charts of the page cover, so that they line up."""
    steps = record.entry.steps
    if steps.first is None or steps.last is None:
        return None
    return steps.first, steps.last


def _main(record: Record) -> tuple[Curve | None, Curve | None]:
    if not record.curves:
        return None, None
    main = record.curves[0]
    overlay = next((c for c in record.curves if c.name == "eval/loss"), None)
    return main, overlay if main.name == "train/loss" else None


def _finding(n: int, finding: FindingEntry, record: Record) -> FindingView:
    curve = record.evidence[n - 1] if n <= len(record.evidence) else None
    if curve is None or not curve.step or finding.start_step is None:
        return FindingView(n, finding, None)
    mark = mark_of(finding, n, record.entry.x_axis)
    plain = Mark(mark.start, mark.end, mark.severity, "", mark.title)
    # The outlier is what this chart is about: nothing is cut off.
    chart = line_chart(
        f"finding-{n}",
        curve,
        [plain],
        height=168,
        widths=(NARROW,),
        x_name=record.entry.x_axis,
        allow_cap=False,
        data=f"evidence.{n - 1}",
    )
    return FindingView(n, finding, chart)


def _layer_map(record: Record, i: int) -> MapView:
    rows = record.layers[i]
    marks = [m for m, f in _marked(record) if f.metric == rows.title or f.layer is None]
    title = STATISTIC_NAMES.get(rows.title, label(rows.title, 60))
    hints = ("a cell shows the greatest value of its steps",)
    chart = heat_chart(
        f"layers-{i}", rows, marks, title=title, hints=hints, x_name=record.entry.x_axis, data=f"layers.{i}"
    )
    return MapView(rows.title, chart, _map_rows(rows), i)


def _share_map(record: Record, i: int) -> MapView:
    rows = record.shares[i]
    chart = heat_chart(
        f"shares-{i}",
        rows,
        [m for m, _ in _marked(record)],
        title=label(rows.title, 60),
        stops=STARVED_LOADED,
        hints=("share against an even one: red is loaded, blue is starved",),
        scale=SHARE_SCALE,
        x_name=record.entry.x_axis,
        data=f"shares.{i}",
    )
    return MapView(rows.title, chart, _map_rows(rows), i)


def _map_rows(rows: Rows) -> tuple[LayerRow, ...]:
    found = []
    for name, peak, end in zip(rows.rows, rows.peak, rows.end, strict=True):
        value, step = ("-", "-") if peak is None else (figure(peak[1]), str(peak[0]))
        found.append(LayerRow(label(name), value, step, figure(end)))
    return tuple(found)


def _replay(record: Record, main: Curve | None, span: tuple[int, int] | None) -> ReplayView | None:
    plan = record.replay
    if plan is None:
        return None
    chart = None
    if main is not None and plan.steps:
        chart = line_chart(
            "replay",
            main,
            _skipped_marks(plan, record.entry.x_axis),
            height=190,
            x_name=record.entry.x_axis,
            domain=span,
            data="curves.0",
        )
        shaded = f"shaded: the {record.entry.x_axis}s whose batches are left out"
        chart = replace(chart, hints=(*chart.hints, shaded))
    return ReplayView(plan, plan.to_json(), ranges(plan.skip_batches), chart)


def _skipped_marks(plan: ReplayConfig, x_name: str) -> list[Mark]:
    """Return the steps whose batches a plan leaves out, neighbours as one range."""
    marks = []
    for part in ranges(plan.steps).split(","):
        first, _, last = part.partition("-")
        title = f"{x_name}s {part} are skipped" if last else f"{x_name} {part} is skipped"
        marks.append(Mark(int(first), int(last or first), "info", "", title))
    return marks


def _judged(record: Record) -> str:
    entry = record.entry
    skipped = f", {plural(len(entry.skipped), 'detector')} had nothing to look at" if entry.skipped else ""
    return f"{plural(len(entry.judged), 'detector')} ran{skipped}"


def _facts(record: Record) -> tuple[tuple[str, str], ...]:
    entry, about = record.entry, record.about
    facts = [("source", label(entry.source)), ("format", label(entry.format))]
    if entry.steps.first is not None:
        facts.append((f"{entry.x_axis}s", f"{entry.steps.first} to {entry.steps.last}, {entry.steps.count} logged"))
    if about.started is not None:
        facts.append(("started", f"{moment(about.started)} UTC"))
    if about.started is not None and about.ended is not None and about.ended > about.started:
        facts.append(("took", _duration(about.ended - about.started)))
    facts += [(key, label(value, 40)) for key in ("branch", "commit") if (value := getattr(about, key)) is not None]
    return tuple(facts)


def _duration(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    if hours:
        return f"{hours} h {rest // 60} min"
    return f"{rest // 60} min {rest % 60} s" if rest >= 60 else f"{rest} s"
