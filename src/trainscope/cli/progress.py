"""A progress bar on standard error, for people, and only when there is something to wait for."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Self

PATIENCE = 1.0
"""Seconds before a bar appears: most analyses are over by then."""


class Progress:
    """Shows a bar once the work has taken longer than ``PATIENCE``, if standard error is a terminal."""

    def __init__(self) -> None:
        self._done, self._total, self._what = 0, 1, ""
        self._timer: threading.Timer | None = None
        self._stop = threading.Event()

    def __enter__(self) -> Self:
        if sys.stderr is not None and sys.stderr.isatty():
            self._timer = threading.Timer(PATIENCE, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def update(self, done: int, total: int, what: str) -> None:
        """Say how many of `total` are done, and what is next."""
        self._done, self._total, self._what = done, total, what

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
        from rich.progress import Progress as Bar

        from trainscope.report.text import label

        columns = (
            SpinnerColumn(),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
        )
        with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("")
            while not self._stop.wait(0.1):
                bar.update(task, completed=self._done, total=self._total, description=label(self._what, limit=50))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
