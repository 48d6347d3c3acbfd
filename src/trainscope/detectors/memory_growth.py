"""memory_growth: memory grows steadily to the end of the log; it will run out.

What it finds
    A logged memory (of the process or of the device) that has grown by `rise` since its first quarter and does not
    slow down: a list, a cache or a graph that is kept.
Algorithm
    Medians of 20 blocks, the first two left out. The last block must be `rise` above the third, nine in ten blocks no
    lower than the one before, no single one may bring half of the rise, and the second half at least a third of
    it: a peak of many steps, which can only grow, and an allocator that fills up both slow down. Where the log says
    what a step does (tokens, sequence length, batch size), memory that grows with it is none.
Parameters
    rise: smallest growth, as a fraction of the level.
False positives
    A data set that is read into memory over the whole run, and a curriculum that is not logged.
Misses
    A leak that is slower than `rise` over the run, and one that is cleared now and then.
Reference
    PyTorch FAQ, "My model reports cuda runtime error(2): out of memory"; torchtune PR 1917.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import tokens
from trainscope.core.robust import block_medians
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, number
from trainscope.detectors.engine.workload import work_at

FloatArray = NDArray[np.float64]

WORDS = frozenset({"mem", "memory", "rss", "vram", "memoryallocated"})
NOT = frozenset({"bandwidth", "accesses", "accessing", "time", "read", "write", "free", "available"})
"""Beside one of these a memory is no amount that is used."""
BLOCKS, SKIPPED = 20, 2
LEVEL = 0.02
"""Of the whole rise, by which a block may fall: the noise of a memory that does not grow yet."""


@dataclass(frozen=True, slots=True)
class Params:
    """How much is a leak."""

    rise: float = 0.2
    """Of the level early in the run; allocators move by a few percent."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding for the memory that grows most."""
    if facts.is_smoke(run):
        return Skipped("memory of a smoke run is judged by graph_leak and against the baseline")
    used = [s.finite() for name, s in run.series.items() if _is_memory(name)]
    long_enough = [s for s in used if len(s) >= 3 * BLOCKS]
    if not long_enough:
        return Skipped(
            f"needs {3 * BLOCKS} points of memory, such as memory_allocated"
            if used
            else "needs memory_allocated or the like"
        )
    found = [(s, growth) for s in long_enough if (growth := _growth(run, s, params)) is not None]
    if not found:
        return []
    memory, (before, after) = max(found, key=lambda pair: pair[1][1] / pair[1][0])
    return [_finding(memory, before, after, len(found) - 1)]


def _is_memory(name: str) -> bool:
    words = set(tokens(name))
    return bool(words & WORDS) and not words & NOT


def _growth(run: Run, memory: Series, params: Params) -> tuple[float, float] | None:
    """Return (level early, level at the end) of a memory that grows steadily, else None."""
    blocks = block_medians(memory.value, len(memory) // BLOCKS)[SKIPPED:]
    before, after = float(blocks[0]), float(blocks[-1])
    rises = np.diff(blocks)
    half = float(blocks[-1] - blocks[len(blocks) // 2])
    if before <= 0.0 or after < (1.0 + params.rise) * before:
        return None
    if (
        (rises >= -LEVEL * (after - before)).mean() < 0.9
        or rises.max() > 0.5 * (after - before)
        or half < (after - before) / 3.0
    ):
        return None
    work = work_at(run, memory.step)
    if work is not None:
        per_step = block_medians(work, len(memory) // BLOCKS)[SKIPPED:]
        if per_step[-1] / per_step[0] - 1.0 > 0.5 * (after / before - 1.0):
            return None
    return before, after


def _finding(memory: Series, before: float, after: float, others: int) -> Finding:
    start, end = int(memory.step[SKIPPED * (len(memory) // BLOCKS)]), int(memory.step[-1])
    also = f" So do {others} more." if others > 1 else " So does one more." if others else ""
    per_100 = 1e4 * (after / before - 1.0) / max(1, end - start)
    return Finding(
        detector="memory_growth",
        severity=Severity.WARNING,
        title="Memory grows",
        message=(
            f"{memory.name} grows steadily from {number(before)} at step {start} to {number(after)} at step {end}, "
            f"{per_100:.2g}% in 100 steps, and does not slow down.{also}"
        ),
        metric=memory.name,
        start_step=start,
        end_step=end,
        peak_step=int(memory.step[int(np.argmax(memory.value))]),
        evidence={"before": before, "after": after, "ratio": after / before},
        fixes=(
            "Keep loss.item() or loss.detach() in lists, not the loss; evaluate under torch.no_grad().",
            "Look for caches and lists that grow: of batches, of metrics, of samples in loader workers.",
        ),
    )


DETECTOR = Detector("memory_growth", "Memory grows", ("memory_allocated",), Params(), detect)
