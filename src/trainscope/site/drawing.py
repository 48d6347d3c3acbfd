"""Draws charts in worker processes: one that aborts, hangs or fails costs one chart and nothing else."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from trainscope.core.errors import ConfigError

TIMEOUT = 60.0
"""Seconds that one chart may take; a usual one takes 0.05."""
JOBS_A_WORKER = 2000
"""A worker's memory grows slowly; it is replaced after so many charts."""
Job = dict[str, Any]

_SOURCE = str(Path(__file__).parents[2])
# Found where this process found it, and never in the working folder: a json.py there is somebody else's.
_START = "import sys; sys.path.append(sys.argv[1]); from trainscope.site.worker import main; main()"


class _Worker:
    """One process, one job at a time."""

    def __init__(self) -> None:
        self.done = 0
        self.process: subprocess.Popen[str] | None = None

    def ask(self, job: Job) -> str | None:
        """Return what was drawn, None where it could not be."""
        if self.process is None or self.done >= JOBS_A_WORKER:
            self._start()
        process = self.process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        self.done += 1
        try:
            process.stdin.write(json.dumps(job, allow_nan=False) + "\n")
            process.stdin.flush()
            # A pipe cannot be waited for on every system; a process can be ended on all.
            alarm = threading.Timer(TIMEOUT, process.kill)
            alarm.start()
            try:
                line = process.stdout.readline()
            finally:
                alarm.cancel()
        except OSError:
            line = ""
        if not line.endswith("\n"):
            self.stop()
            return None
        answer = json.loads(line)
        if "error" in answer:
            self.stop()
            return None
        return str(answer["ok"])

    def _start(self) -> None:
        self.stop()
        self.done = 0
        self.process = subprocess.Popen(
            [sys.executable, "-I" if sys.flags.isolated else "-P", "-c", _START, _SOURCE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )

    def stop(self) -> None:
        """End the process."""
        process, self.process = self.process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue
        process.wait()


def _cores() -> int:
    """Return how many cores this process may use; not every system says more than how many there are."""
    usable = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if usable is None else len(usable(0))


class Drawer:
    """Draws many charts at once; a context manager.

    Parameters
    ----------
    jobs : int, optional
        Worker processes; one for each usable core if not given.

    Raises
    ------
    ConfigError
        If the packages that draw are not installed.
    """

    def __init__(self, jobs: int | None = None) -> None:
        import importlib.util

        missing = [name for name in ("altair", "vl_convert", "PIL") if importlib.util.find_spec(name) is None]
        if missing:
            raise ConfigError(
                "the site needs altair, vl-convert-python and pillow; install the extra: pip install '.[site]'"
            )
        self.count = jobs or _cores()
        self.failed = 0
        self._workers: list[_Worker] = []

    def __enter__(self) -> Drawer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.stop()

    def draw(self, jobs: Sequence[Job]) -> list[str | None]:
        """Return what each job draws, in their order; None for one that could not be drawn.

        A job is ``{"kind": "svg", "spec": ...}`` or ``{"kind": "png", "svg": ...}``.
        """
        waiting: queue.SimpleQueue[tuple[int, Job]] = queue.SimpleQueue()
        for numbered in enumerate(jobs):
            waiting.put(numbered)
        answers: list[str | None] = [None] * len(jobs)
        wanted = min(self.count, len(jobs))
        while len(self._workers) < wanted:
            self._workers.append(_Worker())

        def work(worker: _Worker) -> None:
            while True:
                try:
                    number, job = waiting.get_nowait()
                except queue.Empty:
                    return
                answers[number] = worker.ask(job)

        threads = [threading.Thread(target=work, args=(worker,)) for worker in self._workers[:wanted]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.failed += sum(answer is None for answer in answers)
        return answers
