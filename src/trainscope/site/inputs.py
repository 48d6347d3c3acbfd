"""From paths to records: reads and judges what is new, and takes the rest from the site that is there."""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainscope import __version__
from trainscope.core.errors import NoDataError, ReadError
from trainscope.core.settings import Settings
from trainscope.report.build import build_document, portable
from trainscope.report.cases import case_of
from trainscope.report.document import ErrorEntry
from trainscope.report.pipeline import gather
from trainscope.site import bundle
from trainscope.site.bundle import Record
from trainscope.site.collect import record_of
from trainscope.site.plans import plan_for

Progress = Callable[[int, int, str], None]
"""Called with (logs done, logs in all, next log)."""
STDIN = "-"


@dataclass(frozen=True, slots=True)
class Input:
    """What one log was when it was read, and the runs that it held."""

    digest: str
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Collected:
    """The records of all paths, and what could not be judged."""

    records: Mapping[str, Record]
    """By run id, in the order of the paths; those of unchanged logs are as the site has them."""
    inputs: Mapping[str, Input]
    """By path, as it means the same on another machine."""
    errors: tuple[ErrorEntry, ...]
    failures: tuple[str, ...]
    """Why a log could not be judged, a line each, with the path as it was given."""
    read: int
    """Logs that had to be read; the others were unchanged."""
    unread: tuple[str, ...] = ()
    """Names of logs, and of runs' records, that are named and could not be read or judged, or not all of them."""


@dataclass(frozen=True, slots=True)
class Log:
    """One log that a path names."""

    path: str
    name: str
    """The path, as it means the same on another machine."""
    digest: str
    """Hash of its content and of all that its judgement depends on; empty where there is none."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the paths name, before anything of it is read."""

    records: tuple[Path, ...]
    logs: tuple[Log, ...]
    problems: tuple[ReadError | NoDataError, ...]

    def is_known(self, known: Mapping[str, Input]) -> bool:
        """Tell whether every path names a log, and every log is what it was."""
        if self.records or self.problems:
            return False
        return all(log.digest and log.name in known and known[log.name].digest == log.digest for log in self.logs)


def find(paths: Sequence[str], settings: Settings) -> Wanted:
    """Return what some paths name.

    Parameters
    ----------
    paths : sequence of str
        Run directories, logs, baseline files, globs, ``-``, and records of a site.
    settings : Settings
        Which detectors run, and what fails the gate.
    """
    from trainscope.readers import find_logs

    records, others = _split(paths)
    problems: list[ReadError | NoDataError] = []
    logs = find_logs(others, failures=problems) if others else []
    found = tuple(Log(log, portable(log), _digest(log, settings)) for log in logs)
    return Wanted(tuple(records), found, tuple(problems))


def collect(
    wanted: Wanted,
    settings: Settings,
    known: Mapping[str, Input],
    site: Path,
    *,
    progress: Progress | None = None,
) -> Collected:
    """Return the records of what some paths name.

    Parameters
    ----------
    wanted : Wanted
    settings : Settings
        Those that `wanted` was found with.
    known : mapping of name to Input
        What the site was made from last time; a log with the same content is not read again.
    site : Path
        Folder of the site.
    progress : callable, optional
        Told before each log and once at the end.

    Raises
    ------
    NoDataError, ReadError
        If nothing at all could be read and judged.
    ConfigError
        If a detector or parameter in `settings` is unknown.
    """
    found, damaged = read_records(wanted.records)
    problems = [*damaged, *wanted.problems]
    errors, failures = [error_entry(p) for p in problems], [str(p) for p in problems]
    unread = [Path(error.path).parent.name for error in damaged] + [e.source for e in errors]
    last: ReadError | NoDataError | None = problems[0] if problems else None
    inputs: dict[str, Input] = {}
    read = 0
    for done, log in enumerate(wanted.logs):
        if progress is not None:
            progress(done, len(wanted.logs), log.path)
        same = known.get(log.name)
        records = _kept(same, site) if same is not None and log.digest and same.digest == log.digest else None
        if records is None:
            read += 1
            try:
                records, wrong, why = _judged(log.path, settings)
            except (ReadError, NoDataError) as error:
                last = last or error
                errors.append(error_entry(error))
                failures.append(str(error))
                unread.append(log.name)
                continue
            errors += wrong
            failures += why
            if wrong:
                # Something in it could not be judged: that is to be said again the next time.
                log = replace(log, digest="")
                unread.append(log.name)
        for record in records:
            found.setdefault(record.id, record)
        inputs[log.name] = Input(log.digest, tuple(r.id for r in records))
    if progress is not None:
        progress(len(wanted.logs), len(wanted.logs), "")
    if not found:
        raise last or NoDataError("no log matched; there is nothing to make a site of")
    return Collected(found, inputs, tuple(errors), tuple(failures), read, tuple(unread))


def read_records(paths: Iterable[Path], *, at_home: bool = False) -> tuple[dict[str, Record], list[ReadError]]:
    """Return the records in some files by run id, and why others could not be read.

    Where they are `at_home`, in the site itself, the folder of each is called like its run.
    """
    found: dict[str, Record] = {}
    damaged = []
    for path in paths:
        try:
            record = bundle.read(path)
            if at_home and record.id != path.parent.name:
                raise ReadError(path, f"is the record of another run, {record.id}; remove its folder")
        except ReadError as error:
            damaged.append(error)
        else:
            found[record.id] = record
    return found, damaged


def _split(paths: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Return the records among some paths, and the other paths as they were given."""
    records: list[Path] = []
    others: list[str] = []
    for path in paths:
        if path == STDIN:
            others.append(path)
            continue
        named = Path(path)
        if named.is_dir():
            home = named / "runs" if (named / bundle.MARKER).is_file() else named
            inside = sorted(home.glob(f"*/{bundle.NAME}")) or sorted(home.glob(bundle.NAME))
        else:
            # As the user's shell would: a pattern may be absolute.
            inside = [named] if named.is_file() else sorted(map(Path, glob.glob(path, recursive=True)))  # noqa: PTH207
        # One damaged record among others is still a record, and is told as one.
        if inside and any(p.is_file() and bundle.is_record(p) for p in inside):
            records += [p for p in inside if bundle.is_record(p) or p.name == bundle.NAME]
            others += [str(p) for p in inside if not bundle.is_record(p) and p.name != bundle.NAME]
        else:
            others.append(path)
    return records, others


def _judged(log: str, settings: Settings) -> tuple[list[Record], list[ErrorEntry], list[str]]:
    gathered = gather([log], settings)
    entries = build_document(gathered.judged, settings, gathered.errors).runs
    records = []
    for one, entry in zip(gathered.judged, entries, strict=True):
        case = case_of(one)
        records.append(record_of(case, entry, settings, plan_for(case, entry)))
    return records, list(gathered.errors), list(gathered.failures)


def _kept(same: Input, site: Path) -> list[Record] | None:
    """Return the records that a log had, None where one of them is gone or from another version."""
    try:
        records = [bundle.read(site / "runs" / run / bundle.NAME) for run in same.runs]
    except ReadError:
        return None
    return records if all(r.tool == __version__ for r in records) else None


def _digest(log: str, settings: Settings) -> str:
    """Return a hash of a log's content and of all that its judgement depends on; empty where there is none."""
    if log == STDIN:
        return ""
    path = Path(log)
    found = hashlib.sha256(f"{__version__}\0{settings.model_dump_json()}\0".encode())
    try:
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        for file in files:
            with file.open("rb") as data:
                content = hashlib.file_digest(data, "sha256").digest()
            inside = file.relative_to(path).as_posix() if file != path else ""
            found.update(f"{inside}\0".encode("utf-8", "surrogateescape") + content)
    except OSError:
        return ""
    return found.hexdigest()[:32]


def error_entry(error: ReadError | NoDataError) -> ErrorEntry:
    """Return what the list of runs says of a log that could not be judged."""
    if isinstance(error, ReadError):
        return ErrorEntry(kind="unreadable", source=portable(error.path), line=error.line, reason=error.reason)
    source, _, reason = str(error).rpartition(": ")
    return ErrorEntry(kind="no_data", source=portable(source or STDIN), reason=reason)
