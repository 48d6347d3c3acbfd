"""From runs and judgements to the report document, field by field: never a dump of internals."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

import numpy as np

from trainscope import __version__
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Note, Run, Series
from trainscope.core.settings import Settings
from trainscope.detectors import Judgement
from trainscope.diagnosis.signs import Story
from trainscope.diagnosis.story import tell
from trainscope.report import gate
from trainscope.report.axis_words import in_words
from trainscope.report.document import (
    SCHEMA_VERSION,
    Baseline,
    Document,
    ErrorEntry,
    FindingEntry,
    Metric,
    NoteEntry,
    Number,
    RunEntry,
    Scalar,
    SkippedEntry,
    Steps,
    Tool,
)
from trainscope.report.number import number as number
from trainscope.report.stories import told
from trainscope.report.text import well_formed


@dataclass(frozen=True, slots=True)
class Judged:
    """A run and what the detectors say of it."""

    run: Run
    judgement: Judgement
    detectors: tuple[str, ...] = ()
    """Ids of all detectors that were asked, in report order."""
    known: Mapping[str, Severity] | None = None
    """Fingerprint to severity of the baseline's findings; None without a baseline."""
    stories: tuple[Story, ...] | None = None
    """Of these findings; told when they are needed, where not given."""


def portable(source: str) -> str:
    """Return a path that means the same on another machine.

    Relative paths and ``-`` stay as given; an absolute path becomes relative to the working folder, or
    keeps its last two parts where it lies outside.
    """
    path = PurePath(source)
    if not path.is_absolute():
        return well_formed(source)
    try:
        return well_formed(path.relative_to(Path.cwd()).as_posix())
    except ValueError:
        return well_formed("/".join(path.parts[1:][-2:]))


def run_id(run: Run) -> str:
    """Return twelve hex digits of a SHA-256 over the run's name and points."""
    digest = hashlib.sha256(run.name.encode("utf-8", "surrogatepass"))
    for name in sorted(run.series):
        series = run.series[name]
        digest.update(f"\0{len(name)}:{name}:{len(series)}\0".encode("utf-8", "surrogatepass"))
        # Little-endian on every machine; one NaN, whatever its payload bits.
        digest.update(series.step.astype("<i8").tobytes())
        digest.update(np.where(np.isnan(series.value), np.nan, series.value).astype("<f8").tobytes())
    return digest.hexdigest()[:12]


def build_document(
    judged: Sequence[Judged],
    settings: Settings,
    errors: Sequence[ErrorEntry] = (),
    baseline: Baseline | None = None,
) -> Document:
    """Return the document for some judged runs.

    Parameters
    ----------
    judged : sequence of Judged
        In the order in which they are to be reported.
    settings : Settings
        ``fail_on`` and ``gate`` decide the verdict.
    errors : sequence of ErrorEntry
        What could not be read or judged.
    baseline : Baseline, optional
        What the runs were compared with.
    """
    seen: Counter[str] = Counter()
    runs = []
    for one in judged:
        identity = run_id(one.run)
        seen[identity] += 1
        # The same log under two paths: ids must stay apart, they name folders and anchors.
        unique = identity if seen[identity] == 1 else f"{identity}-{seen[identity]}"
        runs.append(_run_entry(unique, one))
    return Document(
        schema_version=SCHEMA_VERSION,
        tool=Tool(name="trainscope", version=__version__),
        verdict=gate.decide(runs, errors, settings),
        counts=gate.count([f for run in runs for f in run.findings]),
        runs=runs,
        errors=list(errors),
        baseline=baseline,
    )


def _run_entry(identity: str, one: Judged) -> RunEntry:
    run = one.run
    story, incidents = told(tell(run, one.judgement.findings) if one.stories is None else one.stories, run.x_axis)
    return RunEntry.model_validate(
        {
            "id": identity,
            "name": well_formed(run.name),
            "source": portable(run.source),
            "format": run.format,
            "x_axis": run.x_axis,
            "steps": Steps(first=run.first_step, last=run.last_step, count=_distinct_steps(run)),
            "metrics": [_metric(s) for s in run.series.values()],
            "config": {well_formed(k): scalar(v) for k, v in run.config.items()},
            "notes": [_note(n) for n in run.notes],
            "judged": [d for d in one.detectors if d not in {s.detector for s in one.judgement.skipped}],
            "skipped": [
                SkippedEntry.model_validate(
                    {"detector": s.detector, "reason": well_formed(s.reason), "kind": s.kind.value}
                )
                for s in one.judgement.skipped
            ],
            "findings": _findings(one.judgement.findings, one.known, run.x_axis),
            "story": story,
            "incidents": incidents,
        }
    )


def _distinct_steps(run: Run) -> int:
    arrays = [s.step for s in run.series.values() if len(s)]
    if not arrays:
        return 0
    longest = max(arrays, key=len)
    extra = [a[longest[np.searchsorted(longest, a).clip(max=len(longest) - 1)] != a] for a in arrays]
    return len(longest) + len(np.unique(np.concatenate(extra)))


def _metric(series: Series) -> Metric:
    finite = series.value[np.isfinite(series.value)]
    some = len(series) > 0
    return Metric(
        name=well_formed(series.name),
        count=len(series),
        first=number(series.value[0]) if some else None,
        last=number(series.value[-1]) if some else None,
        min=number(finite.min()) if len(finite) else None,
        max=number(finite.max()) if len(finite) else None,
        non_finite=len(series) - len(finite),
    )


def scalar(value: object) -> Scalar:
    """Return a setting as JSON has it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return number(value)
    return well_formed(str(value))


def _note(note: Note) -> NoteEntry:
    return NoteEntry(
        kind=note.kind,
        message=well_formed(note.message),
        count=note.count,
        start_step=note.start_step,
        end_step=note.end_step,
    )


def _findings(findings: Iterable[Finding], known: Mapping[str, Severity] | None, x_axis: str) -> list[FindingEntry]:
    seen: Counter[str] = Counter()
    entries = []
    for finding in findings:
        seen[finding.fingerprint] += 1
        entries.append(_finding(finding, seen[finding.fingerprint], _status(finding, known), x_axis))
    return entries


def _status(finding: Finding, known: Mapping[str, Severity] | None) -> str | None:
    """Return ``known`` for a finding that the baseline has at least as badly."""
    if known is None:
        return None
    before = known.get(finding.fingerprint)
    return "known" if before is not None and before >= finding.severity else "new"


def _finding(finding: Finding, occurrence: int, status: str | None, x_axis: str) -> FindingEntry:
    return FindingEntry.model_validate(
        {
            "fingerprint": finding.fingerprint,
            "detector": finding.detector,
            "severity": finding.severity.label,
            "title": well_formed(finding.title),
            "message": in_words(finding.message, x_axis),
            "metric": None if finding.metric is None else well_formed(finding.metric),
            "layer": None if finding.layer is None else well_formed(finding.layer),
            "start_step": finding.start_step,
            "end_step": finding.end_step,
            "peak_step": finding.peak_step,
            "evidence": _evidence(finding.evidence),
            "fixes": [in_words(f, x_axis) for f in finding.fixes],
            "status": status,
            "occurrence": occurrence,
        }
    )


def _evidence(evidence: Mapping[str, float | int | str]) -> dict[str, Number | str]:
    return {
        well_formed(key): well_formed(value) if isinstance(value, str) else number(value)
        for key, value in evidence.items()
    }
