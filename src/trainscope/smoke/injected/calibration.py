"""A fixed piece of work, timed: how fast this processor is just now, next to whatever else it does."""

from __future__ import annotations

import time
import zlib

_ROUNDS = 1500
_BYTES = bytes(range(256)) * 1024


def seconds() -> float:
    """Return the CPU seconds of about 0.2 ms of work: some for the interpreter, some for memory."""
    start = time.thread_time()
    total = 0
    for number in range(_ROUNDS):
        total += number * number
    zlib.crc32(_BYTES, total & 0xFFFFFFFF)
    return time.thread_time() - start
