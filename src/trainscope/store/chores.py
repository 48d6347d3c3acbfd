"""Work on a run's files that is too long for one training step, done a little at each.

Not a thread: Python code in one would take the interpreter from the training all the same, and at moments
that nobody chose.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

Job = Iterator[None]
"""Work in small pieces: each ``next`` does one, of a few milliseconds."""


class Chores:
    """Jobs that are done one after the other.

    Parameters
    ----------
    idle : callable
        Asked for more when nothing waits; returns a job or None.
    """

    def __init__(self, idle: Callable[[], Job | None]) -> None:
        self._idle = idle
        self._waiting: deque[Job] = deque()

    def add(self, job: Job) -> None:
        """Do `job` after those that wait already."""
        self._waiting.append(job)

    def work(self, seconds: float) -> None:
        """Go on for about `seconds`, at least by one piece, at most until nothing waits.

        Raises
        ------
        StoreError
            If a job fails; it is given up, the others wait on.
        """
        end = time.perf_counter() + seconds
        while True:
            if not self._waiting:
                job = self._idle()
                if job is None:
                    return
                self._waiting.append(job)
            self._piece()
            if time.perf_counter() >= end:
                return

    def finish(self) -> None:
        """Do everything that waits.

        Raises
        ------
        StoreError
            If a job fails; it is given up, the others wait on.
        """
        while self._waiting:
            self._piece()

    def _piece(self) -> None:
        try:
            next(self._waiting[0])
        except StopIteration:
            self._waiting.popleft()
        except BaseException:
            self._waiting.popleft()
            raise
