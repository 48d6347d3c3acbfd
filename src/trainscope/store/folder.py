"""Makes and locks the folder of a run, and keeps its two JSON files."""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainscope.core.config import TrainScopeConfig
from trainscope.core.errors import ConfigError, StoreError
from trainscope.store import layout, stream

MAX_SAME_NAME = 10_000


_written_here: set[Path] = set()
"""Runs this process writes: a record lock does not stop the process that holds it."""


class RunLock:
    """Held while a process writes a run; the operating system frees it when the process dies.

    A record lock, which forked children do not inherit: a data loader's worker that outlives a killed
    training must not keep the next one from resuming.
    """

    def __init__(self, run: Path) -> None:
        self._fd: int | None = None
        self._run = run.resolve()
        busy = StoreError(f"{run}: still being written by another process; end it or choose another run_name")
        if self._run in _written_here:
            raise busy
        with stream.writing(run / layout.LOCK):
            self._fd = os.open(run / layout.LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        _written_here.add(self._run)
        try:
            import fcntl
        except ImportError:  # Windows: two processes that write one resumed run are not noticed there
            return
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            self.release()
            raise busy from None
        except OSError:  # a file system without locks
            return

    def release(self) -> None:
        """Let another process resume the run. Idempotent."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
            _written_here.discard(self._run)

    def __del__(self) -> None:
        self.release()  # of a writer that could not be made


def claim(config: TrainScopeConfig, rank: int | None) -> tuple[Path, bool]:
    """Make a folder that no other run has, or find the one to resume.

    Returns
    -------
    path : Path
    resumed : bool
        Whether the folder is of an earlier session.

    Raises
    ------
    ConfigError
        If ``resume`` is set without a ``run_name``.
    StoreError
        If the folder cannot be made.
    """
    if config.resume and config.run_name is None:
        raise ConfigError("resume = True: needs run_name, the run to go on with")
    name = config.run_name or time.strftime("run_%Y%m%d_%H%M%S")
    suffix = "" if rank is None else f"_rank{rank}"
    root = Path(config.run_dir)
    with stream.writing(root):
        root.mkdir(parents=True, exist_ok=True)
    path = root / f"{name}{suffix}"
    if config.resume and (path / layout.META).is_file():
        return path, True
    for number in range(1, MAX_SAME_NAME):
        path = root / (f"{name}{suffix}" if number == 1 else f"{name}-{number}{suffix}")
        with stream.writing(path):
            try:
                path.mkdir()  # fails if another process was faster: whoever makes it owns it
            except FileExistsError:
                continue
        return path, False
    raise StoreError(f"{root}: {MAX_SAME_NAME} runs are called {name!r}; choose another run_name")


def sweep(run: Path, template: bool | str | None) -> None:
    """Remove what a killed session had not finished, a checkpoint of gigabytes perhaps; nobody else writes this run.

    Raises
    ------
    StoreError
        If the operating system refuses.
    """
    for part in layout.unfinished(run, template):
        with stream.writing(part):
            if part.is_dir():
                shutil.rmtree(part)
            else:
                part.unlink(missing_ok=True)


def write_json(path: Path, data: Mapping[str, Any], *, indent: int | None = None) -> None:
    """Write a JSON file that is whole at any instant.

    Raises
    ------
    StoreError
        If it cannot be written.
    """
    write_text(path, json.dumps(plain(data), indent=indent, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file that is whole at any instant.

    Raises
    ------
    StoreError
        If it cannot be written.
    """
    with stream.whole(path) as part:
        part.write_text(text, encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON object; empty where the file is missing or broken."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def plain(value: Any) -> Any:  # noqa: ANN401 - JSON is whatever it is
    """Return `value` fit for JSON: non-finite numbers as strings, anything unknown by its text."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)
