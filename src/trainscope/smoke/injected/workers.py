"""Processor time of the processes that a training starts for itself: its data loaders' workers."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK") if Path("/proc/self/stat").exists() else 0
"""Clock ticks a second; 0 where the system has no such files."""
_USER, _SYSTEM = 11, 12
"""Places in ``/proc/PID/stat`` after the name: utime and stime, in clock ticks."""


class Workers:
    """The workers of all data loaders, past and present."""

    def __init__(self) -> None:
        self._iterators: weakref.WeakSet[Any] = weakref.WeakSet()
        self._any = False

    def opened(self, iterator: Any, workers: int) -> None:
        """Note an iterator of a loader."""
        if workers:
            self._iterators.add(iterator)
            self._any = True

    def cpu_seconds(self) -> float | None:
        """Return the CPU time so far of all child processes; None before any worker, or where nobody tells.

        Those that have ended count through what the system keeps of them, all children of the process among them.
        """
        if not self._any or not _TICKS:
            return None
        times = [_of(worker.pid) for iterator in self._iterators for worker in getattr(iterator, "_workers", ())]
        ended = os.times()
        return sum(times) + ended.children_user + ended.children_system


def _of(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has ended, and counts among the others
        return 0.0
    # The name, in brackets, may hold spaces and brackets.
    fields = text.rpartition(")")[2].split()
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS
