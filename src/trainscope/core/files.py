"""Names of files that several rooms know, and what becomes of files that were begun and never finished."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

PRINTED = "output.log"
"""What a script printed under ``trainscope smoke``, beside the recording of the same training."""
PART = ".part"
"""Suffix of a file that is not whole yet."""
ABANDONED_SECONDS = 60.0
"""A file is written in far less."""


def sweep(parts: Iterable[Path]) -> None:
    """Remove parts that nobody has written to for a minute: whoever began them was killed.

    A younger one may be of another process that writes the same file at this moment.
    """
    for part in parts:
        with suppress(OSError):
            if time.time() - part.stat().st_mtime > ABANDONED_SECONDS:
                part.unlink()
