"""``trainscope github``: the steps of the GitHub Action, each a command that reads its inputs from the environment."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainscope.cli.exit_codes import ExitCode
from trainscope.cli.output import say, say_undrawn, write_stdout
from trainscope.core.errors import ConfigError, GitHubError, TrainscopeError, writing_in

if TYPE_CHECKING:
    from trainscope.github.api import Api
    from trainscope.github.inputs import Inputs
    from trainscope.github.job import Job
    from trainscope.github.reporting import Reported

FOLDER = "trainscope"
"""Folder in the runner's own for temporary files; a bundle of each check lies in it."""


@click.group(short_help="Steps of the GitHub Action.")
def github() -> None:
    """Run a step of the GitHub Action: its inputs are variables called TRAINSCOPE_INPUT_*.

    To gate on any other CI, or by hand, call trainscope ci.
    """


@github.command(short_help="Find the baseline, run trainscope ci, set the outputs.")
def check() -> ExitCode:
    """Find the baseline, run trainscope ci, and set the outputs of the step.

    The exit code is 0 whatever the verdict is, so that the report is written before the gate closes.
    """
    from trainscope.github.baseline import Found, find_baseline
    from trainscope.github.check import conceal, outputs_of, run_check
    from trainscope.github.job import TOKEN
    from trainscope.smoke.command import terminable

    if os.environ.get(TOKEN):
        # The training will run beside us, as the same user.
        conceal()
    with _announced(outputs={"verdict": "error"}), terminable():
        inputs, job, api = _setting()
        folder = _new_folder(job.temp / FOLDER / inputs.key)
        wanted = inputs.text("baseline", "none")
        found = Found(None, None)
        if wanted == "auto":
            found = find_baseline(job, api, inputs.data_branch, inputs.key, folder / "baseline")
        elif wanted != "none":
            place = job.workspace / inputs.text("working-directory", ".") / wanted
            found = Found(None, place)
        if found.note:
            say(f"no baseline: {found.note}")
        checked = run_check(inputs, job, found, folder, _write)
        _set_outputs(outputs_of(checked))
    return ExitCode.PASS


@github.command(short_help="Write the job summary, annotations and the comment of a check.")
def report() -> ExitCode:
    """Write the job summary, annotations and the comment of a check."""
    from trainscope.github.artifact import read_folder
    from trainscope.github.reporting import report as tell

    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    with _announced(level="warning"):
        inputs, job, api = _setting()
        bundle = read_folder(inputs.bundle_path)
        reported = tell(bundle, inputs, job, api, Path(summary) if summary else None)
    return _told(reported)


@github.command(short_help="Write the comment of the workflow run that started this one.")
def comment() -> ExitCode:
    """Write the comment of the workflow run that started this one, from its artifact."""
    from trainscope.github.reporting import comment_on_run

    with _announced():
        inputs, job, api = _setting()
        reported = comment_on_run(inputs, job, api)
    return _told(reported)


@github.command(short_help="Add a check to the history branch.")
def record() -> ExitCode:
    """Add what a check left to the history branch."""
    from trainscope.github.git import repository
    from trainscope.github.history import History
    from trainscope.github.record import check_event, checked_branch, entry_of

    with _announced():
        inputs, job, _ = _setting()
        check_event(job)
        entry, files, notes = entry_of(inputs.bundle_path, job)
        with repository(job.remote, job.token) as git:
            history = History(git, checked_branch(inputs.data_branch, job))
            lost = history.append(entry, files, keep=inputs.number("keep", 0, 100_000, 500))
    for note in notes:
        say(f"warning: {note}")
    size = sum(map(len, files.values()))
    say(f"{history.branch}: {entry.path}, {len(files)} files, {size / 1e3:.0f} kB, {lost} races lost")
    _set_outputs({"path": entry.path})
    return ExitCode.PASS


@github.command(short_help="Build the site of the history branch.")
def site() -> ExitCode:
    """Build the static site of all runs on the history branch."""
    from trainscope.core.settings import Settings
    from trainscope.github.git import repository
    from trainscope.github.history import History
    from trainscope.github.record import export_records
    from trainscope.report.text import plural
    from trainscope.site.build import Options, build

    with _announced(), tempfile.TemporaryDirectory(prefix="trainscope-site-") as folder:
        inputs, job, _ = _setting()
        out = job.workspace / inputs.text("output", "_site")
        with repository(job.remote, job.token) as git:
            history = History(git, inputs.data_branch)
            if not export_records(history, Path(folder)):
                raise GitHubError(
                    f"{history.branch}: no recorded check has a run to show yet; record one that was judged"
                )
        options = Options(
            title=inputs.text("title", job.repository),
            base_url=inputs.site_url,
            prune=True,
            keep=inputs.number("keep", 0, 100_000, 1000),
        )
        built = build([folder], out, Settings(), options)
    for failure in built.failures:
        say(f"warning: {failure}")
    say_undrawn(built.undrawn)
    say(f"{out}: {plural(built.runs, 'run')}, {built.size / 1e6:.1f} MB")
    _set_outputs({"path": str(out), "runs": str(built.runs)})
    return ExitCode.PASS


def _setting() -> tuple[Inputs, Job, Api]:
    """Return the inputs, the job and a client for its repository."""
    from trainscope.github.api import Api
    from trainscope.github.inputs import Inputs
    from trainscope.github.job import job_of

    job = job_of(os.environ)
    return Inputs(os.environ), job, Api(job.api_url, job.token)


def _new_folder(folder: Path) -> Path:
    """Return an empty folder; an earlier check of the same name in this job gives way."""
    from trainscope.github.check import LEFT

    with writing_in(folder):
        others = sorted(p.name for p in folder.iterdir() if p.name not in LEFT) if folder.exists() else []
        if others:
            raise ConfigError(
                f"{folder}: holds {others[0][:80]!r}, which no check left; set RUNNER_TEMP to another folder"
            )
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
    return folder


def _set_outputs(values: Mapping[str, str]) -> None:
    from trainscope.github.workflow_commands import write_outputs

    place = os.environ.get("GITHUB_OUTPUT")
    if place:
        write_outputs(Path(place), values)


def _told(reported: Reported) -> ExitCode:
    write_stdout("".join(f"{line}\n" for line in reported.commands))
    _set_outputs({"comment-url": reported.comment_url})
    return ExitCode.PASS


@contextmanager
def _announced(level: str = "error", outputs: Mapping[str, str] | None = None) -> Iterator[None]:
    """Make an error that ends the step an annotation of some level; `outputs` are set first."""
    from trainscope.github.workflow_commands import command

    try:
        yield
    except TrainscopeError as error:
        if outputs:
            _set_outputs(outputs)
        title = "trainscope: wrong input" if isinstance(error, ConfigError) else "trainscope"
        write_stdout(command(level, str(error), title=title) + "\n")
        raise


def _write(raw: bytes) -> None:
    sys.stdout.buffer.write(raw)
    sys.stdout.buffer.flush()
