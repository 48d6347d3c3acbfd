"""Ends what a command started and lost sight of: processes in sessions of their own, which no signal to it reaches."""

from __future__ import annotations

import os
import signal
from pathlib import Path

_PROCESSES = Path("/proc")


def end_marked(mark: str) -> None:
    """Kill every process whose environment holds `mark`; where the system does not show environments, none.

    Launchers put their workers into sessions, and lose them when they are killed themselves.
    """
    for pid in marked(mark):
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def marked(mark: str) -> list[int]:
    """Return the processes whose environment, as they were started with it, holds `mark`; never this one."""
    found = []
    for folder in _PROCESSES.glob("[0-9]*"):
        try:
            told = (folder / "environ").read_bytes()
        except OSError:  # gone, or another user's
            continue
        if mark.encode() in told and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found
