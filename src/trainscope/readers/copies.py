"""Copies of logs that lie behind a URI; they live until the process ends, as tables of a run are read late."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory


def copy_of(given: str) -> Path | None:
    """Return where a copy of what is behind a URI lies, None if `given` is no URI.

    Raises
    ------
    ReadError
        If there is nothing, its store cannot be read, or the package that speaks to it is missing.
    """
    if "://" not in given:
        return None
    from trainscope.store import remote

    return remote.fetch(given, Path(_home().name)) if remote.is_uri(given) else None


@cache
def _home() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="trainscope-")
