"""What a training command prints: copied to a file while it runs, its last lines kept."""

from __future__ import annotations

import collections
import os
import selectors
import threading
import time
from io import RawIOBase
from typing import IO

TAIL_LINES = 20
LONGEST = 65_536
"""Bytes after which a line is cut: a progress bar may never end its own."""
POLL_SECONDS = 0.2
LEFT_SECONDS = 5.0
"""Time to read what a command left behind."""


class Printing:
    """Reads a pipe in a thread of its own.

    Parameters
    ----------
    source : binary file
        The reading end.
    file : unbuffered binary file
        Gets all of it, of progress bars their last state.
    """

    def __init__(self, source: IO[bytes], file: RawIOBase) -> None:
        self._source, self._file = source, file
        self._tail: collections.deque[bytes] = collections.deque(maxlen=TAIL_LINES)
        self._ended = threading.Event()
        self._until: float | None = None
        self._thread = threading.Thread(target=self._copy, daemon=True)
        self._thread.start()

    def finish(self) -> tuple[str, ...]:
        """Read what is still there, and return the last lines.

        A process that the command left in a session of its own may hold the pipe open for good; it is not waited for.
        """
        self._ended.set()
        self._thread.join()
        self._source.close()
        return tuple(line.decode("utf-8", "replace").rstrip("\r\n") for line in self._tail)

    def _copy(self) -> None:
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._source, selectors.EVENT_READ)
            while not self._is_over():
                if not selector.select(POLL_SECONDS):
                    if self._ended.is_set():
                        break
                    continue
                piece = os.read(self._source.fileno(), LONGEST)
                if not piece:
                    break
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    self._add(line + b"\n")
                if len(rest) >= LONGEST:
                    self._add(rest)
                    rest = b""
        if rest:
            self._add(rest)

    def _is_over(self) -> bool:
        """Tell whether the command ended so long ago that what still comes is another's."""
        if self._ended.is_set() and self._until is None:
            self._until = time.monotonic() + LEFT_SECONDS
        return self._until is not None and time.monotonic() > self._until

    def _add(self, line: bytes) -> None:
        shown = line.rsplit(b"\r", 1)[-1] if line.endswith(b"\n") and not line.endswith(b"\r\n") else line
        self._file.write(shown)
        self._tail.append(shown)
