"""``trainscope watch``: judge a log while it is being written."""

from __future__ import annotations

import math
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainscope.cli.exit_codes import ExitCode, of_verdict
from trainscope.cli.options import judging_options, settings_for
from trainscope.cli.output import tell, write_stdout
from trainscope.cli.terminal import can_draw, wants_color
from trainscope.core.errors import ConfigError, NoDataError, ReadError, TrainscopeError

if TYPE_CHECKING:
    from trainscope.core.run import Run
    from trainscope.core.settings import Settings
    from trainscope.report.document import FindingEntry, Verdict
    from trainscope.report.pipeline import Analysis


class _Seconds(click.FloatRange):
    """A time that a clock can wait for."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401 - as click has it
        """Return the number; NaN is in no range and yet outside none."""
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail(f"{value} is no time", param, ctx)
        return seconds


@click.command(short_help="Judge a log while it is being written.")
@click.argument("path")
@judging_options
@click.option(
    "--interval",
    type=_Seconds(min=0.05, max=86_400.0),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two looks.",
)
@click.option(
    "--idle",
    type=_Seconds(min=0.0, max=31_536_000.0),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="End when the log has not grown for so long.",
)
def watch(
    path: str,
    format_: str | None,
    fail_on: str | None,
    config: Path | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    no_color: bool,
    interval: float,
    idle: float,
) -> ExitCode:
    """Judge a log while it is being written.

    Prints each finding once, when it first shows; expectations are judged at the end. Ends when the log
    has stopped growing, or on Ctrl-C, with the exit code of the gate. An error that was shown decides it
    even if the log was replaced since.
    """
    _refuse_what_cannot_grow(path)
    settings = settings_for(config, fail_on, select, ignore)
    watching = _Watch(settings, no_color=no_color)
    try:
        for generation, runs in _growth(path, format_, interval, idle):
            watching.look(generation, runs)
    except KeyboardInterrupt:
        write_stdout("\n")  # in the middle of judging
    except ReadError as error:
        if not watching.gone():
            raise
        tell(str(error))
    return watching.end(path, format_)


class _Watch:
    """What was seen so far, and what of it was told."""

    def __init__(self, settings: Settings, *, no_color: bool) -> None:
        self._settings = settings
        self._color = wants_color(sys.stdout, no_color=no_color)
        self._told: dict[str, list[FindingEntry]] = {}
        self._lost: list[FindingEntry] = []
        self._generation = 0
        self._runs: list[Run] = []
        self._last: Analysis | None = None

    def look(self, generation: int, runs: list[Run]) -> None:
        """Judge the log as it stands now, and tell what is new."""
        from trainscope.report.pipeline import analyze_runs

        if generation != self._generation and self._last is not None:
            # The log is another one now, and nothing in it says what went wrong before.
            self._lost += self._failing(f for run in self._last.document.runs for f in run.findings)
            self._told.clear()
        self._generation, self._runs = generation, runs
        self._last = analyze_runs(runs, self._settings)
        self._tell(self._last, ended=False)

    def _tell(self, analysis: Analysis, *, ended: bool) -> None:
        from trainscope.report.terminal import render_findings
        from trainscope.report.text import label

        for entry in analysis.document.runs:
            told = self._told.setdefault(entry.name.removesuffix("#1"), [])  # "a" is "a#1" once "a#2" began
            # What is expected of the whole run can be judged when it has ended.
            now = [f for f in entry.findings if ended or f.detector != "expectation"]
            fresh = [f for f in now if not any(_is_same(f, old) for old in told)]
            told += fresh
            if fresh:
                shown = entry.model_copy(update={"findings": fresh})
                if len(analysis.document.runs) > 1:
                    write_stdout(f"{label(entry.name)}\n")
                write_stdout(render_findings(shown, color=self._color, decorated=can_draw(sys.stdout)))

    def _failing(self, findings: Iterable[FindingEntry]) -> list[FindingEntry]:
        from trainscope.report.gate import fails

        return [f for f in findings if fails(f, self._settings.fail_on, self._settings.gate)]

    def gone(self) -> list[FindingEntry]:
        """Return the failing findings that count whatever the log says now."""
        told = [f for findings in self._told.values() for f in findings if f.severity == "error"]
        return [*self._lost, *self._failing(told)]

    def end(self, path: str, format_: str | None) -> ExitCode:
        """Tell the verdict, and return the exit code: an error that was told counts even if it is gone."""
        from trainscope.report.gate import count, describe
        from trainscope.report.terminal import WORDS, summary

        if self._last is None:
            raise _why_nothing(path, format_)
        self._tell(self._last, ended=True)
        for failure in self._last.failures:
            tell(failure)
        verdict = self._last.document.verdict
        gone = self.gone()
        if verdict.status != "fail" and gone:
            which = f"{describe(count(gone))} at or above {verdict.fail_on}, told before the log changed"
            write_stdout(f"{WORDS['fail']}  {which}\n")
            return ExitCode.GATE_FAILED
        return of_verdict(verdict.status) if write_stdout(f"{summary(self._last.document)}\n") else _unwritten(verdict)


def _unwritten(verdict: Verdict) -> ExitCode:
    """Return the exit code where standard output did not take the report."""
    return ExitCode.GATE_FAILED if verdict.status == "fail" else ExitCode.CANNOT_JUDGE


def _refuse_what_cannot_grow(path: str) -> None:
    """Refuse what a watch would wait for in vain.

    Raises
    ------
    ConfigError
        If the path is standard input, a pattern, a pipe or a device.
    """
    from glob import has_magic

    from trainscope.readers.source import STDIN, status_of

    status = status_of(path)
    if path == STDIN or (status is not None and not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode))):
        raise ConfigError(f"{path}: only files and folders can be watched; analyze reads a pipe to its end")
    if status is None and has_magic(path):
        raise ConfigError(f"{path}: a pattern cannot be watched; name one file or folder")


def _why_nothing(path: str, format_: str | None) -> TrainscopeError:
    """Return why a watch saw no run: a follower waits for what an ordinary reading refuses."""
    from trainscope.readers import read_runs
    from trainscope.readers.source import status_of

    if status_of(path) is not None:
        try:
            read_runs(path, format=format_)
        except TrainscopeError as error:
            return error
    return NoDataError(f"{path}: no data point was written while watching")


def _growth(path: str, format_: str | None, interval: float, idle: float) -> Iterator[tuple[int, list[Run]]]:
    """Yield the runs each time the log has grown, until it has not for `idle` seconds."""
    from trainscope.readers.follow import Follower

    follower = Follower(path, format_)
    grew = time.monotonic()
    try:
        while True:
            runs = follower.poll()
            if runs:
                grew = time.monotonic()
                yield follower.generation, runs
            elif time.monotonic() - grew >= idle:
                break
            time.sleep(min(interval, max(idle, 0.05)))
    except KeyboardInterrupt:
        # Ctrl-C is how one ends a watch; what was seen so far still decides.
        write_stdout("\n")
    runs = follower.finish()
    if runs:
        yield follower.generation, runs


def _is_same(new: FindingEntry, old: FindingEntry) -> bool:
    """Tell whether `new` is `old` seen again: same fault, overlapping steps, no worse than it was."""
    from trainscope.report.gate import severity_of

    if new.fingerprint != old.fingerprint or severity_of(new) > severity_of(old):
        return False
    if new.start_step is None or old.start_step is None:
        return True
    new_end = new.end_step if new.end_step is not None else new.start_step
    old_end = old.end_step if old.end_step is not None else old.start_step
    # The fault of a run that goes on reaches further at each look.
    return new.start_step <= old_end and new_end >= old.start_step
