"""``trainscope watch``: judge a log while it is being written."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainscope.cli.exit_codes import ExitCode, of_verdict
from trainscope.cli.options import judging_options, settings_for
from trainscope.cli.output import say, write_stdout
from trainscope.cli.terminal import can_draw, wants_color
from trainscope.core.errors import NoDataError, TrainscopeError

if TYPE_CHECKING:
    from trainscope.core.run import Run
    from trainscope.report.document import FindingEntry
    from trainscope.report.pipeline import Analysis


@click.command(short_help="Judge a log while it is being written.")
@click.argument("path")
@judging_options
@click.option(
    "--interval",
    type=click.FloatRange(min=0.05),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two looks.",
)
@click.option(
    "--idle",
    type=click.FloatRange(min=0.0),
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

    Prints each finding once, when it first shows. Ends when the log has stopped growing, or on Ctrl-C,
    with the exit code of the gate.
    """
    from trainscope.report.pipeline import analyze_runs
    from trainscope.report.terminal import render_findings, summary
    from trainscope.report.text import printable

    settings = settings_for(config, fail_on, select, ignore)
    color = wants_color(sys.stdout, no_color=no_color)
    seen: list[FindingEntry] = []
    last: Analysis | None = None
    try:
        for run in _growth(path, format_, interval, idle):
            last = analyze_runs([run], settings)
            entry = last.document.runs[0]
            fresh = [f for f in entry.findings if not any(_is_same(f, old) for old in seen)]
            seen += fresh
            if fresh:
                shown = entry.model_copy(update={"findings": fresh})
                write_stdout(render_findings(shown, color=color, decorated=can_draw(sys.stdout)))
    except KeyboardInterrupt:
        # Ctrl-C is how one ends a watch; what was seen so far still decides.
        write_stdout("\n")
    if last is None:
        raise _why_nothing(path, format_)
    for failure in last.failures:
        say(f"error: {printable(failure)}")
    write_stdout(f"{summary(last.document)}\n")
    return of_verdict(last.document.verdict.status)


def _why_nothing(path: str, format_: str | None) -> TrainscopeError:
    """Return why a watch saw no run: a follower waits for what an ordinary reading refuses."""
    from trainscope.readers import read_runs

    if Path(path).exists():
        try:
            read_runs(path, format=format_)
        except TrainscopeError as error:
            return error
    return NoDataError(f"{path}: no data point was written while watching")


def _growth(path: str, format_: str | None, interval: float, idle: float) -> Iterator[Run]:
    """Yield the run each time it has grown, until it has not for `idle` seconds."""
    from trainscope.readers.follow import Follower

    follower = Follower(path, format_)
    grew = time.monotonic()
    while True:
        run = follower.poll()
        if run is not None:
            grew = time.monotonic()
            yield run
        elif time.monotonic() - grew >= idle:
            return
        time.sleep(min(interval, max(idle, 0.05)))


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
