"""Which runs broke alike, from their records: the logs may be long gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Skipped
from trainscope.diagnosis.case import Case
from trainscope.diagnosis.signs import Cause, Explanation, Sign, Stage, Story
from trainscope.report.case_document import BandEntry, ClusterEntry, Survey
from trainscope.report.document import FindingEntry, Incident, StoryEvent
from trainscope.report.survey_build import survey
from trainscope.report.text import plural
from trainscope.site.bundle import Curve, Record
from trainscope.site.charts import Chart, line_chart
from trainscope.site.index import ClusterView, Row
from trainscope.site.record_parts import Style

MAX_CLUSTERS = 12
MAX_ALONE = 60
MAX_MEMBERS = 40


def survey_of(records: Sequence[Record]) -> Survey | None:
    """Return the survey of some runs, None where fewer than two broke.

    The curves of a record are reduced, but the points around the onset are all there: bands are exact within
    ``ONSET_POINTS`` of it.
    """
    cases = [case_of(record) for record in records]
    if sum(bool(case.grave) for case in cases) < 2:
        return None
    return survey(cases, [record.entry for record in records])


def cluster_views(
    found: Survey | None, rows: Mapping[str, Row]
) -> tuple[tuple[ClusterView, ...], tuple[ClusterView, ...]]:
    """Return the clusters of several runs with links and their common fate, and those of one run."""
    if found is None:
        return (), ()
    many = [c for c in found.clusters if len(c.members) > 1][:MAX_CLUSTERS]
    alone = [c for c in found.clusters if len(c.members) == 1 and c.members[0] in rows][:MAX_ALONE]
    return tuple(_view(c, rows) for c in many), tuple(_view(c, rows) for c in alone)


def case_of(record: Record) -> Case:
    """Return a record as the comparisons of many runs see a run."""
    entry = record.entry
    series = {curve.name: _series(curve) for curve in record.curves}
    loss = record.onset_loss
    if loss is not None:
        series[loss.name] = _merged(_series(loss), series.get(loss.name))
    run = Run(
        name=entry.name,
        source=entry.source,
        format=entry.format,
        series=series,
        config=MappingProxyType(dict(entry.config)),
        x_axis=entry.x_axis,
    )
    return Case(
        run=run,
        findings=tuple(_finding(f) for f in entry.findings),
        stories=tuple(_story(i, [e for e in entry.story if e.incident == n]) for n, i in enumerate(entry.incidents, 1)),
        judged=tuple(entry.judged),
        skipped=tuple(Skipped(reason=s.reason, detector=s.detector) for s in entry.skipped),
    )


def _view(cluster: ClusterEntry, rows: Mapping[str, Row]) -> ClusterView:
    members = [rows[m] for m in cluster.members if m in rows]
    pair = cluster.counterexample
    return ClusterView(
        entry=cluster,
        members=tuple(members[:MAX_MEMBERS]),
        more=max(len(members) - MAX_MEMBERS, 0),
        chart=_fate_chart(cluster) if len(members) > 1 else None,
        member=rows.get(pair.member) if pair.member is not None else None,
        stable=rows.get(pair.stable) if pair.stable is not None else None,
    )


def _fate_chart(cluster: ClusterEntry) -> Chart | None:
    """Return the band of a cluster's losses, each over its own baseline, with the nearest stable run."""
    band = cluster.fate
    middle = _column(band.median)
    if not any(v is not None for v in middle):
        return None
    fate = _band_curve("their median, with quartiles", band, middle, low=_column(band.low), high=_column(band.high))
    other = None
    if band.counterexample:
        other = _band_curve("the nearest stable run", band, _column(band.counterexample), style="eval")
    chart = line_chart(
        f"fate-{cluster.id}", fate, height=170, x_name="step from the onset", overlay=other, rules=(0,), allow_cap=False
    )
    hints = tuple(h for h in chart.hints if "median" not in h)
    title = f"Loss over its own baseline, {plural(band.runs, 'run')} aligned at the onset"
    return replace(chart, title=title, hints=hints)


def _band_curve(
    name: str,
    band: BandEntry,
    middle: list[float | None],
    *,
    low: list[float | None] | None = None,
    high: list[float | None] | None = None,
    style: Style = "loss",
) -> Curve:
    some = [(s, v) for s, v in zip(band.offset, middle, strict=True) if v is not None]
    least, most = (min(some, key=lambda p: p[1]), max(some, key=lambda p: p[1])) if some else (None, None)
    return Curve(
        name=name,
        style=style,
        count=len(some),
        step=band.offset,
        middle=middle,
        low=low or [],
        high=high or [],
        first=some[0] if some else None,
        last=some[-1] if some else None,
        least=least,
        most=most,
    )


def _column(values: Sequence[object]) -> list[float | None]:
    return [float(v) if isinstance(v, (int, float)) else None for v in values]


def _series(curve: Curve) -> Series:
    # Of an envelope its middle; a row without a value is a place that held NaN.
    step, at = np.unique(np.array(curve.step, dtype=np.int64), return_index=True)
    value = np.array([np.nan if v is None else v for v in curve.middle], dtype=np.float64)
    return Series(curve.name, step, value[at])


def _merged(exact: Series, rest: Series | None) -> Series:
    if rest is None or not len(exact):
        return exact
    outside = (rest.step < exact.step[0]) | (rest.step > exact.step[-1])
    step = np.concatenate([rest.step[outside], exact.step])
    order = np.argsort(step, kind="stable")
    return Series(exact.name, step[order], np.concatenate([rest.value[outside], exact.value])[order])


def _finding(entry: FindingEntry) -> Finding:
    return Finding(
        detector=entry.detector,
        severity=Severity[entry.severity.upper()],
        title=entry.title,
        message=entry.message,
        metric=entry.metric,
        layer=entry.layer,
        start_step=entry.start_step,
        end_step=entry.end_step,
        peak_step=entry.peak_step,
        fixes=tuple(entry.fixes),
    )


def _story(entry: Incident, events: Sequence[StoryEvent]) -> Story:
    return Story(
        signs=tuple(
            Sign(
                step=e.step,
                stage=Stage[e.stage.upper()],
                signal=e.signal,
                event=e.event,
                where=e.where,
                end_step=e.end_step,
                score=float(e.score),
                detector=e.detector,
            )
            for e in events
            if e.stage is not None
        ),
        onset=entry.onset,
        end=entry.end,
        loss_step=entry.loss_step,
        layer=entry.layer,
        parameter=entry.parameter,
        explanations=tuple(Explanation(Cause(e.cause), e.title, e.weight) for e in entry.explanations),
        suspects=tuple(entry.suspects),
        missing=tuple(entry.missing),
    )
