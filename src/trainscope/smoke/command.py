"""Runs the training command with the recorder injected, and watches over it: steps, output, time."""

from __future__ import annotations

import collections
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from trainscope.core.errors import TrainingFailedError
from trainscope.smoke.left_out import LEFT_OUT
from trainscope.smoke.printing import Printing
from trainscope.smoke.processes import end_marked

POLL_SECONDS = 0.2
GRACE_SECONDS = 10.0
"""Time a command has to end by itself after Ctrl-C or a time-out, before it is killed."""
LINGER_SECONDS = 60.0
"""Time a command has to end by itself once every process has recorded its last step: a thread may keep it alive."""
_STEP, _END = b'{"kind":"step"', b'{"kind":"end"'

Watcher = Callable[[int, int], None]
"""Told the steps done and the steps wanted."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What to run, and how."""

    command: tuple[str, ...]
    steps: int
    seed: int | None = None
    timeout: float | None = None
    """Seconds."""
    skip: tuple[int, ...] | None = None
    """Positions of batches that the script is not to get; None where this is no replay."""
    loader: int = 0
    """Which loader they are of, in the order in which training first reads them."""
    method: str = "drop_batch"
    """How they are left out, as :data:`trainscope.replay.config.Method` says."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the command ended."""

    code: int
    """Exit code; negative for a signal."""
    timed_out: bool
    tail: tuple[str, ...]
    """The last lines it printed."""
    seconds: float


def execute(wish: Wish, records: Path, log: Path, watch: Watcher) -> Outcome:
    """Run a command to its end.

    Parameters
    ----------
    records : Path
        Existing, empty folder; gets one file of JSON lines a process that took optimizer steps.
    log : Path
        Gets all that the command prints.
    watch : callable
        Called now and then.

    Raises
    ------
    TrainingFailedError
        If the command cannot be started.
    KeyboardInterrupt
        On Ctrl-C or SIGTERM, after the command has been ended.
    """
    began = time.monotonic()
    with log.open("wb", buffering=0) as file, terminable():
        process = _start(wish, records)
        assert process.stdout is not None
        printing = Printing(process.stdout, file)
        try:
            timed_out = _wait(process, wish, Steps(records), watch, began)
        finally:
            _end(process, records)
            lines = printing.finish()
    return Outcome(process.returncode, timed_out, lines, time.monotonic() - began)


def environment(wish: Wish, records: Path) -> dict[str, str]:
    """Return the environment that injects the recorder into every Python process below the command."""
    here = Path(__file__).resolve().parent
    given = os.environ.get("PYTHONPATH")
    # Absolute: a Makefile may change the folder before it starts Python.
    told = {"steps": wish.steps, "folder": str(records.resolve()), "seed": wish.seed}
    told |= {"loader": wish.loader, "method": wish.method}
    found = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(here / "hook"), *([given] if given else [])]),
        "TRAINSCOPE_SMOKE_PACKAGE": str(here.parent),
        "TRAINSCOPE_SMOKE": json.dumps(told),
    }
    if wish.seed is not None:
        found |= {"PYTHONHASHSEED": str(wish.seed % 2**32), "TRAINSCOPE_SEED": str(wish.seed)}
    return found


class Steps:
    """Counts the recorded steps while the files grow."""

    def __init__(self, records: Path) -> None:
        self._records = records
        self._read: dict[Path, int] = {}
        self._count: collections.Counter[Path] = collections.Counter()
        self._ended: set[Path] = set()

    def done(self) -> int:
        """Return the steps of the process that has taken most."""
        for path in self._records.glob("*.jsonl"):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._read[path] = self._read.get(path, 0) + len(line)
                    self._count[path] += line.startswith(_STEP)
                    if line.startswith(_END):
                        self._ended.add(path)
        return max(self._count.values(), default=0)

    def are_over(self) -> bool:
        """Tell whether every process that took steps has said that it takes no more; as of the last count."""
        return bool(self._ended) and all(path in self._ended for path, count in self._count.items() if count)


def _start(wish: Wish, records: Path) -> subprocess.Popen[bytes]:
    (records / LEFT_OUT).write_text(json.dumps(wish.skip or ()), encoding="ascii")
    try:
        return subprocess.Popen(
            wish.command,
            env=environment(wish, records),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that all its processes can be ended together
        )
    except OSError as error:
        name, reason = wish.command[0], (error.strerror or type(error).__name__).lower()
        way = f"; start it with python {name}" if name.endswith(".py") and Path(name).is_file() else ""
        raise TrainingFailedError(f"{name}: cannot be started ({reason}){way}") from None


def _wait(process: subprocess.Popen[bytes], wish: Wish, steps: Steps, watch: Watcher, began: float) -> bool:
    """Wait for the end, or until nothing more is to come; return whether the time was up first."""
    over: float | None = None
    while True:
        try:
            process.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            watch(steps.done(), wish.steps)
            now = time.monotonic()
            if steps.are_over():
                over = now if over is None else over
                if now - over > LINGER_SECONDS:
                    return False
            elif wish.timeout is not None and now - began > wish.timeout:
                return True
        else:
            watch(steps.done(), wish.steps)
            return False


def _end(process: subprocess.Popen[bytes], records: Path) -> None:
    """End the command and every process it left behind, gently at first.

    What it put into a session of its own is ended too, unless the command came to its end by itself.
    """
    by_itself = process.poll() is not None
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if process.poll() is not None:
                break
            _signal(process, number)
            try:
                process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                continue
    finally:  # a second Ctrl-C waits for nobody
        _signal(process, signal.SIGKILL)
        if not by_itself:
            end_marked(str(records.resolve()))


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return


@contextmanager
def terminable() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into KeyboardInterrupt: a cancelled job, a closed terminal leave no training behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    before = {}
    hangup = getattr(signal, "SIGHUP", None)  # not every system has it
    for number in (signal.SIGTERM, *(() if hangup is None else (hangup,))):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup asks
            before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
