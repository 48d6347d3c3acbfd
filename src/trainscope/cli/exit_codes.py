"""What the process says when it ends; documented, tested, and never given another meaning."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of every command."""

    PASS = 0
    """Everything was judged and nothing at or above ``--fail-on`` was found."""
    GATE_FAILED = 1
    """A finding at or above ``--fail-on``; wins over 2 where both apply."""
    CANNOT_JUDGE = 2
    """Bad usage, a bad settings file, or a log that could not be read or judged."""
    NO_DATA = 3
    """Nothing matched, or what matched holds no point."""
    COMMAND_FAILED = 4
    """The training command crashed, timed out, or took no optimizer step."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C."""


def of_verdict(status: str) -> ExitCode:
    """Return the exit code of a report's verdict."""
    return {"pass": ExitCode.PASS, "fail": ExitCode.GATE_FAILED, "error": ExitCode.CANNOT_JUDGE}[status]
