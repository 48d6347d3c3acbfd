"""A folder of outputs belongs to one process at a time."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trainscope.core.errors import StoreError, writing_in

if sys.platform != "win32":  # which has no such locks; nothing there records a training script
    import fcntl


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Make a folder if it is missing, and keep other processes that ask from writing into it meanwhile.

    The system lets go of it when the process ends, however it ends; nothing is left in the folder.

    Raises
    ------
    StoreError
        If another process has it, or it cannot be made.
    """
    with writing_in(folder):
        folder.mkdir(parents=True, exist_ok=True)
        held = _hold(folder)
    try:
        yield
    finally:
        if held is not None:
            os.close(held)


def _hold(folder: Path) -> int | None:
    if sys.platform == "win32":
        return None
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        raise StoreError(f"{folder}: another run writes there now; wait for it, or name another --out") from None
    except OSError:
        pass  # a file system without locks: as before there were any
    return held
