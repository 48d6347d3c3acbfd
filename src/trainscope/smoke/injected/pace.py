"""How fast this processor is now: the CPU time of a piece of work that never changes.

CPU time is no constant of a program: neighbours that share caches and cores slow it down. A fixed piece of work beside
each step tells how much of a difference between two runs is theirs.
"""

from __future__ import annotations

import time
import zlib

_ROUNDS = 2_000
_BUFFER = bytes(range(256)) * 1_024
"""256 KiB: more than the nearest cache holds."""


def seconds() -> float:
    """Return the CPU time of this thread for some arithmetic and one pass over a buffer, about 0.2 ms."""
    start = time.thread_time()
    total = 0
    for number in range(_ROUNDS):
        total += number * number
    zlib.crc32(_BUFFER, total & 0xFFFFFFFF)
    return time.thread_time() - start
