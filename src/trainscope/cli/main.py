"""The ``trainscope`` command: finds the subcommand, and turns every outcome into an exit code.

Subcommands are imported when they run, so that ``--help`` starts no numerical library.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from io import TextIOWrapper
from types import TracebackType
from typing import NoReturn

import click

from trainscope import __version__
from trainscope.cli.exit_codes import ExitCode
from trainscope.cli.output import say, silence_stdout, tell
from trainscope.core.errors import NoDataError, TrainingFailedError, TrainscopeError

COMMANDS: Mapping[str, str] = {
    "analyze": "Judge the logs of training runs.",
    "watch": "Judge a log while it is being written.",
    "smoke": "Record the first steps of a training script, unchanged.",
    "ci": "Run, judge, compare, report and gate in one go.",
    "replay": "Plan a rewind and the batches to skip.",
    "compare": "Compare a run with another.",
    "baseline": "Keep a run to compare later ones with.",
    "report": "Write the case file of a run, or compare many runs.",
    "site": "Build a static site of all runs.",
    "github": "Steps of the GitHub Action.",
    "init": "Write a settings file and a workflow for this repository.",
    "detectors": "List the detectors.",
    "explain": "Print all about one detector.",
    "completion": "Print a shell completion script.",
}
"""Name of each command, which is the name of its module and function too, and its line in ``--help``."""


class LazyGroup(click.Group):
    """A group whose commands are imported only when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the commands in the order of ``--help``."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"trainscope.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 pass, 1 gate failed, 2 cannot judge, 3 no data, 4 training command failed, 130 interrupted.",
)
@click.version_option(__version__, "--version", prog_name="trainscope", message="%(prog)s %(version)s")
def cli() -> None:
    """Catch broken training runs from their logs, say why they broke, and gate CI on it."""


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    args : sequence of str, optional
        The arguments after the program's name; those of the process if not given.
    """
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal's encoding lacks is no reason to fail.
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        result = cli.main(args=None if args is None else list(args), prog_name="trainscope", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
        return ExitCode.CANNOT_JUDGE
    except click.ClickException as error:
        _tell_usage(error)
        return error.exit_code
    except click.Abort:
        return ExitCode.INTERRUPTED
    except SystemExit:
        # Without its standalone mode, click ends so only where the reader of `--help` went away.
        silence_stdout()
    except TrainscopeError as error:
        return _report(error)
    except OSError as error:
        if isinstance(sys.stdout, TextIOWrapper):
            silence_stdout()
        tell(f"{error.filename or 'standard output'}: {error.strerror or error}")
        return ExitCode.CANNOT_JUDGE
    else:
        return result if isinstance(result, int) else ExitCode.PASS
    return ExitCode.PASS


def _tell_usage(error: click.ClickException) -> None:
    said = " ".join(error.format_message().split())
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx is not None else "trainscope"
    tell(f"{said.rstrip('.?').replace('. Did you mean', '; did you mean')}; see {command} --help")


def _report(error: TrainscopeError) -> ExitCode:
    """Show an error, after the last lines of a training command that failed, and return its exit code."""
    from trainscope.report.text import printable

    if isinstance(error, TrainingFailedError):
        for line in error.tail:
            say(f"  | {printable(line)}")
    tell(str(error))
    if isinstance(error, TrainingFailedError):
        return ExitCode.COMMAND_FAILED
    return ExitCode.NO_DATA if isinstance(error, NoDataError) else ExitCode.CANNOT_JUDGE


def main() -> NoReturn:
    """Run the command line, and end the process with its exit code, whenever Ctrl-C comes."""
    sys.excepthook = _report_bug
    try:
        code = run()
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    # What is left is Python's own end: the work is done and its outcome stands.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


def _report_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show the traceback of an error nobody foresaw, and end with "cannot judge".

    Python itself would end with 1, which is the code of a failed gate.
    """
    sys.__excepthook__(kind, error, trace)
    say("error: this is a bug in trainscope; please report it with the lines above")
    if sys.stderr is not None:
        sys.stderr.flush()
    os._exit(ExitCode.CANNOT_JUDGE)
