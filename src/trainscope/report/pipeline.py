"""From paths to a report document: the one pipeline behind the command line, the Action and the tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from trainscope.core.errors import NoDataError, ReadError
from trainscope.core.metrics import LOSS_KINDS, Kind, kind
from trainscope.core.run import Run
from trainscope.core.settings import Settings
from trainscope.detectors import Configured, configure, judge
from trainscope.diagnosis.compare import IDS as COMPARERS
from trainscope.diagnosis.story import tell
from trainscope.report.apart import keep_apart
from trainscope.report.build import Judged, build_document, portable
from trainscope.report.document import Document, ErrorEntry
from trainscope.report.text import label, printable, shorten

JUDGEABLE = LOSS_KINDS | {Kind.GRAD_NORM, Kind.REWARD}
"""A log without any of these says nothing about the health of a training run."""

Progress = Callable[[int, int, str], None]
"""Called with (files done, files in all, next file)."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """A document and the runs that it is about."""

    document: Document
    runs: Mapping[str, Run]
    """Run id to run, for outputs that draw charts."""
    failures: tuple[str, ...] = ()
    """Why a log could not be judged, a line each, with the path as it was given."""
    alone: tuple[Judged, ...] = ()
    """The runs in the document's order, and what the detectors say of each by itself, whatever it was compared with."""


def analyze(
    paths: Sequence[str],
    settings: Settings,
    *,
    format: str | None = None,
    progress: Progress | None = None,
    spare: Path | None = None,
) -> Analysis:
    """Find, read and judge logs.

    Parameters
    ----------
    paths : sequence of str
        Files, folders, globs, or ``-`` for standard input.
    settings : Settings
        Which detectors run, with which parameters, and what fails the gate.
    format : str, optional
        Name of the reader to use; found by content if not given.
    progress : callable, optional
        Told before each file and once at the end.
    spare : Path, optional
        Where the report will be written; it must be none of the logs.

    Returns
    -------
    Analysis
        A file that cannot be read does not stop the others: it is one of the document's errors, and
        the verdict is then never ``pass``. Nor is it for a run that no detector judged.

    Raises
    ------
    NoDataError
        If nothing matched, or nothing that matched holds a single point.
    ReadError
        If no log at all could be read and judged; the first reason.
    ConfigError
        If a detector or parameter in `settings` is unknown, or a log is `spare`.
    """
    found = gather(paths, settings, format=format, progress=progress, spare=spare)
    return replace(analysis_of(found.judged, settings, found.errors), failures=found.failures)


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was read and judged, and what could not be."""

    judged: tuple[Judged, ...]
    errors: tuple[ErrorEntry, ...]
    failures: tuple[str, ...]
    """Why a log could not be judged, a line each, with the path as it was given."""


def gather(
    paths: Sequence[str],
    settings: Settings,
    *,
    format: str | None = None,
    progress: Progress | None = None,
    spare: Path | None = None,
) -> Gathered:
    """Find, read and judge logs; parameters and errors are those of :func:`analyze`."""
    from trainscope.readers import find_logs, read_runs

    chosen = configure(settings, others=COMPARERS)
    failures: list[ReadError | NoDataError] = []
    logs = find_logs(paths, failures=failures)
    if spare is not None:
        keep_apart(spare, logs)
    errors = [_error_entry(_place_of(failure), failure) for failure in failures]
    judged: list[Judged] = []
    for done, log in enumerate(logs):
        if progress is not None:
            progress(done, len(logs), log)
        try:
            runs = read_runs(log, format=format)
            if not any(len(s) for run in runs for s in run.series.values()):
                raise NoDataError(f"{log}: holds no data point")
        except (ReadError, NoDataError) as error:
            failures.append(error)
            errors.append(_error_entry(log, error))
            continue
        for run in runs:
            one = _judged(run, chosen)
            why = _why_unjudged(one)
            if why is not None:
                failures.append(why)
                errors.append(_error_entry(log, why, "not_judgeable"))
                if not is_judgeable(run) and not one.judgement.findings:
                    continue
            judged.append(one)
    if progress is not None:
        progress(len(logs), len(logs), "")
    if not judged:
        raise _worst(failures) if failures else NoDataError("no log matched; nothing was judged")
    return Gathered(tuple(judged), tuple(errors), tuple(str(f) for f in failures))


def analyze_runs(runs: Sequence[Run], settings: Settings) -> Analysis:
    """Judge runs that are already in memory.

    Raises
    ------
    ConfigError
        If a detector or parameter in `settings` is unknown.
    """
    chosen = configure(settings, others=COMPARERS)
    judged = [_judged(run, chosen) for run in runs]
    blind = [why for why in map(_why_unjudged, judged) if why is not None]
    errors = [_error_entry(why.path, why, "not_judgeable") for why in blind]
    analysis = analysis_of(judged, settings, errors)
    return replace(analysis, failures=tuple(str(why) for why in blind))


def is_judgeable(run: Run) -> bool:
    """Tell whether the run logs anything whose health can be judged: a loss, a gradient norm, a reward."""
    return any(len(s) and kind(name) in JUDGEABLE for name, s in run.series.items())


def _judged(run: Run, chosen: tuple[Configured, ...]) -> Judged:
    judgement = judge(run, chosen)
    # Told here, while the run's layers are at hand.
    return Judged(run, judgement, tuple(one.detector.id for one in chosen), stories=tell(run, judgement.findings))


def analysis_of(judged: Sequence[Judged], settings: Settings, errors: Sequence[ErrorEntry] = ()) -> Analysis:
    """Return the document of runs that were judged already, with the runs."""
    document = build_document(judged, settings, errors)
    runs = {entry.id: one.run for entry, one in zip(document.runs, judged, strict=True)}
    return Analysis(document, MappingProxyType(runs), alone=tuple(judged))


def _why_unjudged(one: Judged) -> ReadError | None:
    """Return why nothing can be said of a run: it logs nothing to judge, or no detector could judge it."""
    if not is_judgeable(one.run):
        return ReadError(one.run.source, _not_judgeable(one.run))
    skipped = one.judgement.skipped
    if len(skipped) < len(one.detectors):
        return None
    reasons = "; ".join(f"{s.detector}: {s.reason}" for s in skipped[:3])
    more = f" and {len(skipped) - 3} more" if len(skipped) > 3 else ""
    said = f"all of them were skipped ({reasons}{more})" if skipped else "select, ignore and enabled leave none to run"
    name = "" if one.run.name in one.run.source else f" {shorten(printable(one.run.name), 40)}"
    return ReadError(one.run.source, f"no detector judged this run{name}: {said}")


def _place_of(failure: ReadError | NoDataError) -> str:
    return failure.path if isinstance(failure, ReadError) else str(failure).rpartition(": ")[0] or "-"


def _not_judgeable(run: Run) -> str:
    names = [label(n, 40) for n in run.series if len(run.series[n])]
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return f"nothing to judge: no loss, gradient norm or reward among its metrics ({shown}); log one of them"


def _error_entry(source: str, error: ReadError | NoDataError, kind_: str | None = None) -> ErrorEntry:
    reading = isinstance(error, ReadError)
    reason = error.reason if isinstance(error, ReadError) else str(error).removeprefix(f"{source}: ")
    return ErrorEntry.model_validate(
        {
            "kind": kind_ or ("unreadable" if reading else "no_data"),
            "source": portable(source),
            "line": error.line if isinstance(error, ReadError) else None,
            "reason": printable(reason),
        }
    )


def _worst(failures: Sequence[ReadError | NoDataError]) -> ReadError | NoDataError:
    """Return the failure to report when nothing was judged: unreadable before empty."""
    first = next((f for f in failures if isinstance(f, ReadError)), failures[0])
    if len(failures) == 1:
        return first
    more = f" (and {len(failures) - 1} more that could not be judged)"
    if isinstance(first, ReadError):
        return ReadError(first.path, first.reason + more, line=first.line)
    return NoDataError(str(first) + more)
