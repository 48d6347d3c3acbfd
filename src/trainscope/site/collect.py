"""From a judged run to its record: which curves and maps it keeps, and what has no room."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trainscope import __version__
from trainscope.core.finding import Severity
from trainscope.core.run import Run
from trainscope.core.settings import Settings
from trainscope.diagnosis.case import Case
from trainscope.replay.config import ReplayConfig
from trainscope.report import gate
from trainscope.report.case_build import case_entry
from trainscope.report.document import FindingEntry, Incident, RunEntry, StoryEvent
from trainscope.report.lookup import series_of
from trainscope.report.panels import primary, ranked
from trainscope.site.bundle import MAX_BYTES, About, Curve, Record, from_text, to_text
from trainscope.site.curves import curve_of, evidence_of, short
from trainscope.site.record_parts import EARLIEST, LATEST
from trainscope.site.rows import layer_maps, share_maps
from trainscope.site.weights import weights_of

MAX_CURVES = 12
MAX_EVIDENCE = 24
MAX_FINDINGS = 100
MAX_METRICS = MAX_SETTINGS = 200
MAX_NOTES = 50
MAX_INCIDENTS, MAX_EVENTS, MAX_SUSPECTS = 8, 160, 200
ONSET_POINTS = 120
"""Points of the loss before and after an onset that a record keeps as they are."""
BRANCH_KEYS = ("git.branch", "git_branch", "branch", "git.ref", "env.git_branch")
COMMIT_KEYS = ("git.commit", "git_commit", "commit", "git.sha", "git_sha", "env.git_commit")
"""Settings under which a log may name the code it ran."""


def record_of(case: Case, entry: RunEntry, settings: Settings, replay: ReplayConfig | None = None) -> Record:
    """Return the record of a judged run.

    Parameters
    ----------
    case : Case
        Its points, and the stories of its findings.
    entry : RunEntry
        What the report document says of it.
    settings : Settings
        ``fail_on`` and ``gate`` decide the run's own verdict.
    replay : ReplayConfig, optional
        How to train it again.
    """
    run = case.run
    told_in_full = case_entry(case, entry)
    kept, left_out = _shortened(entry)
    curves, without = _curves(entry, run)
    told = [(f.metric, f.layer) for f in entry.findings if f.metric is not None and f.layer is not None]
    layers, statistics = layer_maps(run, told)
    shares, blocks = share_maps(run)
    main = case.main
    around = None if main is None else (main.onset, max(main.onset, main.loss_step or main.onset))
    weights, unchanged = weights_of(run, around)
    left_out |= {"curves": without, "layer maps": statistics, "share maps": blocks, "weight histograms": unchanged}
    record = Record(
        tool=__version__,
        entry=kept,
        verdict=gate.decide([entry], [], settings),
        about=_about(run, entry.config),
        status=told_in_full.status,
        summary=told_in_full.summary,
        main_incident=_main_incident(case, kept),
        unknown=told_in_full.unknown[:20],
        curves=curves,
        onset_loss=_onset_loss(run, case.onset),
        evidence=[_evidence(f, run) for f in entry.findings[:MAX_EVIDENCE]],
        layers=layers,
        shares=shares,
        weights=weights,
        replay=replay,
        left_out={key: n for key, n in left_out.items() if n},
    )
    # As it will be read back: a default that was set (0.0 for 0) is no longer told apart.
    return from_text(to_text(_within_limit(record)), entry.source)


def _onset_loss(run: Run, onset: int | None) -> Curve | None:
    loss = run.get("train/loss")
    if loss is None or onset is None:
        return None
    at = int(np.searchsorted(loss.step, onset))
    near = loss.step[max(at - ONSET_POINTS, 0) : at + ONSET_POINTS + 1]
    return curve_of(loss, len(near), within=(int(near[0]), int(near[-1]))) if len(near) else None


def _curves(entry: RunEntry, run: Run) -> tuple[list[Curve], int]:
    main = primary(run)
    others = [s for s in ranked(entry, run) if main is None or s.name != main.name]
    series = ([] if main is None else [main]) + others
    return [curve_of(s) for s in series[:MAX_CURVES]], max(len(series) - MAX_CURVES, 0)


def _evidence(finding: FindingEntry, run: Run) -> Curve | None:
    series = series_of(finding, run)
    if series is None or finding.start_step is None:
        return None
    end = finding.end_step if finding.end_step is not None else finding.start_step
    return evidence_of(series, finding.start_step, max(end, finding.start_step))


def _shortened(entry: RunEntry) -> tuple[RunEntry, dict[str, int]]:
    """Return an entry whose lists and names are bounded, and how much was cut off."""
    limits = {"findings": MAX_FINDINGS, "metrics": MAX_METRICS, "notes": MAX_NOTES}
    cut = {key: max(len(getattr(entry, key)) - most, 0) for key, most in limits.items()}
    cut["settings"] = max(len(entry.config) - MAX_SETTINGS, 0)
    settings = list(entry.config.items())[:MAX_SETTINGS]
    config = {short(k): short(v) if isinstance(v, str) else v for k, v in settings}
    findings = [_bounded(f) for f in entry.findings[:MAX_FINDINGS]]
    kept = entry.model_copy(
        update={
            "name": short(entry.name),
            "source": short(entry.source),
            "findings": findings,
            "metrics": [m.model_copy(update={"name": short(m.name)}) for m in entry.metrics[:MAX_METRICS]],
            "notes": [n.model_copy(update={"message": n.message[:1000]}) for n in entry.notes[:MAX_NOTES]],
            "config": config,
            "story": [_event(e) for e in entry.story[:MAX_EVENTS]],
            "incidents": [_incident(i) for i in entry.incidents[:MAX_INCIDENTS]],
        }
    )
    return kept, cut


def _event(event: StoryEvent) -> StoryEvent:
    names = {"signal": short(event.signal), "where": None if event.where is None else short(event.where)}
    return event.model_copy(update={**names, "event": event.event[:400], "text": (event.text or "")[:600] or None})


def _incident(incident: Incident) -> Incident:
    return incident.model_copy(update={"suspects": incident.suspects[:MAX_SUSPECTS]})


def _main_incident(case: Case, entry: RunEntry) -> int | None:
    """Return the place of the incident that matters most; the document has the same ones, by onset."""
    main = case.main
    if main is None:
        return None
    return next((i for i, one in enumerate(entry.incidents) if (one.onset, one.end) == (main.onset, main.end)), None)


def _bounded(finding: FindingEntry) -> FindingEntry:
    evidence = {short(k): short(v) if isinstance(v, str) else v for k, v in list(finding.evidence.items())[:40]}
    names = {key: short(v) for key in ("title", "metric", "layer") if (v := getattr(finding, key)) is not None}
    rest = {"message": finding.message[:2000], "fixes": [f[:1000] for f in finding.fixes[:10]], "evidence": evidence}
    return finding.model_copy(update={**names, **rest})


def _about(run: Run, config: Mapping[str, object]) -> About:
    times = [s.time[np.isfinite(s.time)] for s in run.series.values() if s.time is not None]
    some = [t for t in times if len(t)]
    ends = [_seconds(f(f(t) for t in some)) for f in (min, max)] if some else [None, None]
    found = {key: _named(config, keys) for key, keys in (("branch", BRANCH_KEYS), ("commit", COMMIT_KEYS))}
    return About(started=ends[0], ended=ends[1], **found)


def _seconds(value: float) -> int | None:
    """Return Unix seconds, None where they are no date of a training run."""
    return int(value) if EARLIEST <= value < LATEST else None


def _named(config: Mapping[str, object], keys: tuple[str, ...]) -> str | None:
    return next((short(str(config[k])) for k in keys if config.get(k) not in (None, "")), None)


def _within_limit(record: Record) -> Record:
    """Drop what tells least until the record is small enough; every drop is counted."""
    while len(to_text(record)) > MAX_BYTES:
        for part, least in (("evidence", 4), ("layers", 1), ("curves", 3), ("shares", 1), ("weights", 0)):
            held = getattr(record, part)
            if len(held) > least:
                left_out = {**record.left_out, part: record.left_out.get(part, 0) + 1}
                record = record.model_copy(update={part: held[:-1], "left_out": left_out})
                break
        else:
            break
    return record


def worst(record: Record) -> str | None:
    """Return the word of the run's worst finding, None for a run without."""
    return max((f.severity for f in record.entry.findings), key=lambda s: Severity[s.upper()], default=None)
