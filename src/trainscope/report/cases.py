"""From paths to case files: one run in full, many runs side by side, or the weights of two steps."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainscope import __version__
from trainscope.core.errors import ConfigError, ReadError
from trainscope.core.run import Run
from trainscope.core.settings import Settings
from trainscope.diagnosis.case import Case
from trainscope.diagnosis.ranks import are_one_launch, folders, launches, rank_of, teller, told_by
from trainscope.diagnosis.story import tell
from trainscope.diagnosis.weight_change import between
from trainscope.report.apart import keep_apart
from trainscope.report.build import Judged, build_document, portable, run_id
from trainscope.report.case_build import case_entry, change_entry
from trainscope.report.case_document import CASE_VERSION, CaseFile, DiffEntry, ReplayEntry
from trainscope.report.document import RunEntry, Tool
from trainscope.report.pipeline import Progress, gather
from trainscope.report.survey_build import survey
from trainscope.report.text import label, plural, printable, well_formed


@dataclass(frozen=True, slots=True, eq=False)
class Reported:
    """A case file, and what the outputs need beside it."""

    file: CaseFile
    runs: tuple[Run, ...] = ()
    """For charts: the run of a case; none of a survey."""
    failures: tuple[str, ...] = ()
    """Why a log could not be judged, a line each, with the path as it was given."""


def case_of(one: Judged) -> Case:
    """Return a judged run with its stories."""
    judgement = one.judgement
    skipped = {s.detector for s in judgement.skipped}
    judged = tuple(d for d in one.detectors if d not in skipped)
    stories = tell(one.run, judgement.findings) if one.stories is None else one.stories
    return Case(one.run, judgement.findings, stories, judged, judgement.skipped)


def report_run(
    path: str, settings: Settings, *, progress: Progress | None = None, spare: Path | None = None
) -> Reported:
    """Return the case file of the one run that a path holds; `spare`, where it will be written, must be none of it.

    Raises
    ------
    ReadError
        If it cannot be read or judged, or holds several runs.
    NoDataError, ConfigError
        As :func:`trainscope.report.pipeline.analyze`.
    """
    found = gather([path], settings, progress=progress, spare=spare)
    if not are_one_launch([one.run for one in found.judged]):
        raise ReadError(path, _several([one.run for one in found.judged]))
    ranks = [case_of(one) for one in found.judged]
    case = teller(ranks)
    entry = build_document(found.judged, settings, found.errors).runs[ranks.index(case)]
    file = CaseFile(
        schema_version=CASE_VERSION,
        tool=tool(),
        kind="run",
        case=case_entry(case, entry, replay_of(case, entry, folders(ranks)), told_by(ranks)),
        errors=list(found.errors),
    )
    return Reported(file, (case.run,), found.failures)


def replay_of(case: Case, entry: RunEntry, places: Sequence[Path]) -> ReplayEntry | None:
    """Return the plan to train a run again; None where nothing happened.

    Parameters
    ----------
    case : Case
    entry : RunEntry
        Of the same run.
    places : sequence of Path
        Folders with its checkpoints: its own first, then those of the other ranks.
    """
    from trainscope.replay.checkpoints import Checkpoint, of_ranks
    from trainscope.replay.config import Source
    from trainscope.replay.plan import Places, plan

    saved, random = ([Checkpoint(c.step, portable(c.path)) for c in found] for found in of_ranks(places))
    source = Source(id=entry.id, name=entry.name, path=entry.source)
    found = plan(case.run, case.findings, case.stories, Places(saved, random), source=source)
    if found is None:
        return None
    return ReplayEntry(
        action=found.action,
        reason=well_formed(found.reason),
        checkpoint=found.checkpoint,
        rewind_to_step=found.rewind_to_step,
        skip_batches=found.skip_batches,
        notes=[well_formed(note) for note in found.notes],
        commands=[f"trainscope replay --run {shlex.quote(entry.source)}", *map(well_formed, found.commands)],
    )


def report_runs(
    paths: Sequence[str], settings: Settings, *, progress: Progress | None = None, spare: Path | None = None
) -> Reported:
    """Return the survey of all runs that some paths hold; `spare`, where it will be written, must be none of them.

    A log that cannot be read does not stop the others: it is one of the file's errors.

    Raises
    ------
    ReadError, NoDataError, ConfigError
        As :func:`trainscope.report.pipeline.analyze`.
    """
    found = gather(paths, settings, progress=progress, spare=spare)
    entries = build_document(found.judged, settings, found.errors).runs
    cases = [case_of(one) for one in found.judged]
    entry_of = {id(case): entry for case, entry in zip(cases, entries, strict=True)}
    # The ranks of a launch are one training: counted one by one, they would be evidence several times.
    trainings = {id(told): (told, len(ranks)) for ranks in launches(cases) for told in [teller(ranks)]}
    file = CaseFile(
        schema_version=CASE_VERSION,
        tool=tool(),
        kind="runs",
        survey=survey(
            [case for case, _ in trainings.values()],
            [entry_of[case] for case in trainings],
            len(found.errors),
            ranks=[count for _, count in trainings.values()],
        ),
        errors=list(found.errors),
    )
    return Reported(file, (), found.failures)


def report_diff(path: str, first: int, last: int, *, spare: Path | None = None) -> Reported:
    """Return how the weights of a recorded run changed between two steps; `spare` is where it will be written.

    Raises
    ------
    ReadError, NoDataError
        If it cannot be read, or holds several runs.
    ConfigError
        If the run has not both steps, or `spare` is part of it.
    """
    from trainscope.readers import find_logs, read_runs

    logs = find_logs([path])
    if spare is not None:
        keep_apart(spare, logs)
    runs = [run for log in logs for run in read_runs(log)]
    if not are_one_launch(runs):
        raise ReadError(path, _several(runs))
    run = min(runs, key=lambda one: rank_of(one) or 0)  # all ranks have the same weights, or each its part of them
    begin, end = run.first_step, run.last_step
    if begin is not None and end is not None and not (begin <= first < last <= end):
        raise ConfigError(f"--diff {first}:{last}: the run has steps {begin} to {end}; give an earlier and a later one")
    file = CaseFile(
        schema_version=CASE_VERSION,
        tool=tool(),
        kind="diff",
        diff=DiffEntry(
            id=run_id(run),
            name=well_formed(run.name),
            source=portable(run.source),
            change=change_entry(between(run, first, last)),
        ),
    )
    return Reported(file, (run,))


def tool() -> Tool:
    """Return who writes the file."""
    return Tool(name="trainscope", version=__version__)


def _several(runs: Sequence[Run]) -> str:
    shown = ", ".join(label(printable(run.name), 30) for run in runs[:3]) + (", ..." if len(runs) > 3 else "")
    return f"holds {plural(len(runs), 'run')} ({shown}); name one of them, or ask for --runs"
