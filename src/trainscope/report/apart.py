"""Keeps what is written apart from what is read: no report may take the place of a log."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO
from urllib.parse import unquote

from trainscope.core.errors import ConfigError
from trainscope.store.layout import CHECKPOINTS, LOCK, MANIFEST, META, RNG_STATES, SUFFIX

_OWN = frozenset({"trainer_state.json", "training_args.json", "args.json", "smoke.json", META, MANIFEST, LOCK})
_OWN_FOLDERS = frozenset({RNG_STATES, CHECKPOINTS})
_FILE_URI = "file://"


def keep_apart(spare: Path, logs: Sequence[str]) -> None:
    """Refuse to write over a log that is to be read, or over a file of a run's folder.

    Parameters
    ----------
    spare : Path
        Where will be written.
    logs : sequence of str
        Paths of logs as given, ``-`` for standard input.

    Raises
    ------
    ConfigError
        If `spare` is one of them, whatever it is called.
    """
    try:
        target = spare.resolve(strict=True)
    except (OSError, RuntimeError):
        return  # a new file
    for log in logs:
        if log == "-":
            same = sys.stdin is not None and _is_open_as(target, sys.stdin)
        else:
            path = Path(unquote(log.removeprefix(_FILE_URI)) if log.startswith(_FILE_URI) else log)
            same = os.path.exists(path) and (path.samefile(target) or _lies_in_run(target, path))  # noqa: PTH110
        if same:
            raise ConfigError(f"--out {spare}: is one of the logs to judge; name another file")


def _is_open_as(target: Path, stream: TextIO) -> bool:
    try:
        return os.path.samestat(target.stat(), os.fstat(stream.fileno()))
    except (OSError, ValueError):
        return False


def _lies_in_run(target: Path, folder: Path) -> bool:
    """Tell whether a file is one of those that a run's folder is read from."""
    if not folder.is_dir() or folder.resolve() not in target.parents:
        return False
    within = target.relative_to(folder.resolve())
    own = target.name in _OWN or "tfevents" in target.name or target.suffix == SUFFIX
    return own or not _OWN_FOLDERS.isdisjoint(within.parts[:-1])
