"""Runs judged and compared with a baseline, as one document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trainscope.core.errors import NoDataError, ReadError
from trainscope.core.finding import Finding
from trainscope.core.run import Run
from trainscope.core.settings import Settings
from trainscope.detectors import Judgement, configure, judge
from trainscope.detectors.base import Skipped
from trainscope.diagnosis.base import Comparison
from trainscope.diagnosis.compare import IDS, Comparisons, compare_runs, known_severities, same_curve
from trainscope.report.build import Judged, build_document, number, portable
from trainscope.report.document import Baseline, ErrorEntry, FixedEntry
from trainscope.report.document import Comparison as ComparisonEntry
from trainscope.report.pipeline import Analysis, analyze_runs
from trainscope.report.text import printable, well_formed

WALL_TIME = "throughput"
"""Detector that a comparison leaves out: on a busy runner unchanged code took 0.1 to 5 times its wall time."""
BUNDLE_FOLDER = "bundle"
"""Folder of the compact records that `trainscope ci` leaves in its --out."""


def read_baselines(paths: Sequence[str]) -> list[Run]:
    """Return the runs that paths of baselines name.

    Parameters
    ----------
    paths : sequence of str
        Each a saved baseline file, the ``--out`` folder of an earlier `trainscope ci`, a recorded run or any log.

    Raises
    ------
    ReadError, NoDataError
        If one of them is missing, cannot be read or holds no point: a baseline that is asked for and not there must
        not pass unseen.
    """
    from trainscope.readers import find_logs, read_runs

    runs: list[Run] = []
    for path in paths:
        kept = sorted(Path(path, BUNDLE_FOLDER).glob("*.arrow")) if Path(path).is_dir() else []
        if not Path(path).exists() and not any(c in path for c in "*?["):
            raise ReadError(path, "no such baseline; save one with trainscope baseline save, or leave --baseline out")
        logs = [str(file) for file in kept] or find_logs([path])
        runs += [run for log in logs for run in read_runs(log)]
    if not any(len(s) for run in runs for s in run.series.values()):
        raise NoDataError(f"{', '.join(paths)}: the baseline holds no data point")
    return runs


def analyze_alone(runs: Sequence[Run], settings: Settings, missing: ReadError | NoDataError | None) -> Analysis:
    """Judge runs without a baseline, and say so where one was asked for.

    Raises
    ------
    ConfigError
        If a detector or parameter in `settings` is unknown.
    """
    plain = analyze_runs(runs, settings)
    if missing is None:
        return plain
    path = missing.path if isinstance(missing, ReadError) else "baseline"
    reason = missing.reason if isinstance(missing, ReadError) else str(missing)
    lost = ErrorEntry(kind="no_data", source=portable(path), reason=printable(f"no baseline: {reason}"))
    judged = [
        replace(one, detectors=tuple(entry.judged)) for one, entry in zip(plain.alone, plain.document.runs, strict=True)
    ]
    document = build_document(judged, settings, [*plain.document.errors, lost])
    return replace(plain, document=document, failures=(*plain.failures, str(missing)))


def analyze_against(runs: Sequence[Run], baselines: Sequence[Run], settings: Settings, name: str) -> Analysis:
    """Judge runs and compare each with its baseline.

    Parameters
    ----------
    runs : sequence of Run
    baselines : sequence of Run
        At least one. A run of one rank of several is compared with the baselines of the same rank.
    settings : Settings
        ``gate`` decides whether findings that the baseline has fail too.
    name : str
        What the document calls the baseline.

    Raises
    ------
    ConfigError
        If a detector, comparer or parameter in `settings` is unknown.
    """
    plain = analyze_runs(runs, settings)
    chosen = tuple(one for one in configure(settings, others=IDS) if one.detector.id != WALL_TIME)
    ids = tuple(one.detector.id for one in chosen)
    judged: list[Judged] = []
    found: list[Finding] = []
    fixed: dict[str, FixedEntry] = {}
    lines: list[ComparisonEntry] = []
    for run in runs:
        partners = _partners(run, baselines)
        before = [judge(base, chosen) for base in partners]
        comparisons = compare_runs(run, partners, settings)
        own = judge(run, chosen)
        known = dict(known_severities(before))
        moved = {f.fingerprint for f in own.findings if not same_curve(f, run, partners)}
        known |= {f.fingerprint: f.severity for f in own.findings if f.fingerprint not in moved}
        judgement = _together(own, comparisons)
        judged.append(Judged(run, judgement, (*comparisons.asked, *ids), known))
        found += judgement.findings
        # A fault is fixed only if no baseline of it is without: one run of several may have had it by chance.
        fixed |= {f.fingerprint: _fixed(f) for f in _in_all(before) if _reaches(run, f)}
        lines += [_line(line, run, several=len(runs) > 1) for line in comparisons.lines]
    for finding in found:
        fixed.pop(finding.fingerprint, None)
    baseline = Baseline(name=well_formed(name), runs=len(baselines), fixed=list(fixed.values()), comparisons=lines)
    document = build_document(judged, settings, _errors(plain), baseline)
    return replace(plain, document=document)


def _partners(run: Run, baselines: Sequence[Run]) -> list[Run]:
    rank = run.config.get("smoke.rank")
    same = [base for base in baselines if base.config.get("smoke.rank") == rank]
    return same or list(baselines)


def _together(judgement: Judgement, comparisons: Comparisons) -> Judgement:
    findings = sorted(
        (*comparisons.findings, *judgement.findings),
        key=lambda f: (-f.severity, f.start_step if f.start_step is not None else -1),
    )
    wall = Skipped("a comparison never judges wall time", WALL_TIME)
    return Judgement(tuple(findings), (*comparisons.skipped, *judgement.skipped, wall))


def _in_all(judgements: Sequence[Judgement]) -> list[Finding]:
    prints = [{f.fingerprint for f in judgement.findings} for judgement in judgements]
    common = set.intersection(*prints) if prints else set()
    return [f for f in judgements[0].findings if f.fingerprint in common] if judgements else []


def _reaches(run: Run, finding: Finding) -> bool:
    """Tell whether a run goes far enough to show a baseline's fault; what it never came to is not mended."""
    if finding.start_step is None or run.last_step is None:
        return True
    end = finding.end_step if finding.end_step is not None else finding.start_step
    return 2 * run.last_step >= finding.start_step + end


def _fixed(finding: Finding) -> FixedEntry:
    return FixedEntry(fingerprint=finding.fingerprint, detector=finding.detector, title=well_formed(finding.title))


def _line(line: Comparison, run: Run, *, several: bool) -> ComparisonEntry:
    return ComparisonEntry(
        metric=well_formed(f"{run.name}: {line.metric}" if several else line.metric),
        step=line.step,
        value=None if line.value is None else number(line.value),
        band=None if line.band is None else (number(line.band[0]), number(line.band[1])),
        p_value=None if line.p_value is None else number(line.p_value),
        verdict=well_formed(line.verdict),
    )


def _errors(analysis: Analysis) -> list[ErrorEntry]:
    return list(analysis.document.errors)
