"""cost_change: a step costs more processor time, or memory grows, compared with the baseline.

What it finds
    Steps that take longer for the same mathematics (extra forwards, a loop instead of one call, a slow data set),
    and memory that grows where the baseline's did not.
Algorithm
    Processor time of the process, never wall time: on a busy runner unchanged code took 0.1 to 5 times its wall
    time. Neighbours that share caches still move it (measured: 0.6 to 1.4 for the median of unchanged code on a
    machine with twice as many jobs as cores), so the fastest steps, the lower quartile and the median must all have
    grown by ``ratio``, by more where the run waited for its processor more than the baseline did, where a fixed piece
    of work beside each step took longer than in the baseline (by as much), and where activations are checkpointed
    that were not; and only runs on the same kind of processor with as many threads are compared. Data loader workers
    are other processes: their CPU time a step, a mean because the system counts it in ticks of 10 ms, is added to the
    process's own where both runs have as many of them; where they have not, work has moved between processes, and
    nothing is judged.
    Memory: growth after the first tenth of the run, and the peak (without mapped files, which the page cache of the
    machine decides about), each against the baseline's with a floor.
Parameters
    ratio: least ratio of CPU times.
    milliseconds: least difference of CPU times.
    crowded: factor on the ratio where the machine was busier than for the baseline.
    checkpointed: factor on the ratio where activations are checkpointed and were not: that trades time for memory.
    memory: share of the baseline's peak that is no noise.
    memory_floor: MiB that are no noise, whatever the peak.
False positives
    A change that is meant to cost more: accept it as the new baseline.
Misses
    Time spent on a GPU, and in workers where the system has no /proc.
Reference
    The design's benchmark, 109 changes measured twice: throughput faults 1.8 to 3.0, healthy ones 0.75 to 1.25.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import FloatArray, Run, Series
from trainscope.detectors.base import Lack, Skipped, number
from trainscope.diagnosis.base import Compared, Comparer, Comparison, Pair, align

TIME, MEMORY, PEAK = "train/cpu_step_time", "memory/cpu_mb", "memory/peak_mb"
WORKERS, PACE = "train/worker_cpu_time", "smoke/pace"
CUDA, WALL = "memory/cuda_peak_mb", "train/step_time"
QUANTILES = (0.05, 0.25, 0.5)
"""Of a step's CPU time: a busy neighbour lifts the median most and the fastest steps least."""
CROWDED = 1.15
"""Ratio of waiting from which a run is taken to have had a busier machine than its baseline."""
LEAST = 20
SAME_MACHINE = ("platform", "processor", "cpu_capability", "threads", "device")


@dataclass(frozen=True, slots=True)
class Params:
    """What is more than noise."""

    ratio: float = 1.3
    """Of CPU time."""
    milliseconds: float = 4.0
    """Of CPU time a step: steps of a few milliseconds are mostly what surrounds them: queues, collectives."""
    crowded: float = 1.25
    """On the ratio, where the run waited for the processor more than the baseline did."""
    checkpointed: float = 1.5
    """A second forward is a third of a step; in small layers its bookkeeping as much again."""
    memory: float = 0.05
    """Of the baseline's peak."""
    memory_floor: float = 16.0
    """MiB; a healthy run's resident memory wanders by under 4."""


def compare(pair: Pair, params: Params) -> Compared | Skipped:
    """Compare processor time and memory."""
    findings: list[Finding] = []
    lines: list[Comparison] = []
    for found, line in (_time(pair, params), *_memory(pair, params)):
        if line is not None:
            lines.append(line)
        if found is not None:
            findings.append(found)
    if not lines:
        return Skipped("needs CPU time or memory of two smoke runs", kind=Lack.RECORDING)
    return Compared(tuple(findings), tuple(lines))


def _time(pair: Pair, params: Params) -> tuple[Finding | None, Comparison | None]:
    mine, theirs = pair.run.get(TIME), pair.base.get(TIME)
    if mine is None or theirs is None or min(len(mine), len(theirs)) < LEAST:
        return None, None
    other = [k for k in SAME_MACHINE if facts.provenance(pair.run, k) != facts.provenance(pair.base, k)]
    if other:
        return None, Comparison(TIME, f"not judged: another {', '.join(other)}")
    beside, note = _workers(pair)
    if beside is None:
        return None, Comparison(TIME, f"not judged: {note}")
    now, then = _late(mine), _late(theirs)
    now, then = now + beside[0], then + beside[1]
    median = float(np.median(now) / max(float(np.median(then)), 1e-9))
    least = min(float(np.quantile(now, q) / max(float(np.quantile(then, q)), 1e-9)) for q in QUANTILES)
    limit = params.ratio * max(params.crowded if _crowding(pair) > CROWDED else 1.0, _slower(pair))
    if pair.run.config.get("smoke.checkpointed") and not pair.base.config.get("smoke.checkpointed"):
        limit *= params.checkpointed
    more = 1e3 * float(np.median(then)) * (median - 1.0)
    slow = least >= limit and more >= params.milliseconds
    line = Comparison(TIME, ("worse" if slow else "within margin") + note, None, median, (1 / limit, limit))
    if not slow:
        return None, line
    finding = Finding(
        detector="cost_change",
        severity=Severity.WARNING,
        title="Steps cost more processor time",
        message=(
            f"A step takes {number(1e3 * float(np.median(now)))} ms of CPU time{note}, the baseline's "
            f"{number(1e3 * float(np.median(then)))} ms: {number(median)} times as much."
        ),
        metric=TIME,
        start_step=int(mine.step[0]),
        end_step=int(mine.step[-1]),
        evidence={"ratio": median, "least_ratio": least, "limit": limit},
        fixes=("Profile a step; look for extra forwards, Python loops over samples, work in __getitem__.",),
    )
    return finding, line


def _workers(pair: Pair) -> tuple[tuple[float, float] | None, str]:
    """Return the CPU seconds a step of the workers of both runs, None where those cannot be compared, and a note."""
    counts = [_worker_count(run) for run in (pair.run, pair.base)]
    series = [run.get(WORKERS) for run in (pair.run, pair.base)]
    if not any(counts):
        return (0.0, 0.0), ""
    mine, theirs = series
    if counts[0] != counts[1]:
        return None, f"{counts[0]} workers of loaders, {counts[1]} in the baseline"
    if mine is None or theirs is None:
        return (0.0, 0.0), " (without its loaders' workers)"
    return (float(np.mean(_late(mine))), float(np.mean(_late(theirs)))), " (its loaders' workers included)"


def _worker_count(run: Run) -> int:
    return sum(int(loader.get("workers") or 0) for loader in facts.table(run, "smoke.loaders"))


def _slower(pair: Pair) -> float:
    """Return how much longer a fixed piece of work took than beside the baseline; 1 or more."""
    mine, theirs = pair.run.get(PACE), pair.base.get(PACE)
    if mine is None or theirs is None or not len(mine) or not len(theirs):
        return 1.0
    return max(1.0, float(np.median(_late(mine)) / max(float(np.median(_late(theirs))), 1e-9)))


def _crowding(pair: Pair) -> float:
    """Return how much more of the time the run waited for a processor than the baseline did; 1 or more."""
    waits = []
    for run in (pair.run, pair.base):
        wall, cpu = run.get(WALL), run.get(TIME)
        if wall is None or cpu is None:
            return 1.0
        both = align(wall, cpu)
        waits.append(max(1.0, float(np.median(both.run / np.maximum(both.base, 1e-9)))))
    return max(1.0, waits[0] / waits[1])


def _late(series: Series) -> FloatArray:
    """Return the values after the first tenth, where caches and allocators warm up."""
    return series.finite().value[len(series) // 10 :]


def _memory(pair: Pair, params: Params) -> list[tuple[Finding | None, Comparison | None]]:
    found = []
    peaks = [_last(run.get(PEAK)) for run in (pair.run, pair.base)]
    grown = [_growth(run.get(MEMORY)) for run in (pair.run, pair.base)]
    room = max(params.memory_floor, params.memory * (peaks[1] or 0.0))
    if grown[0] is not None and grown[1] is not None:
        more = grown[0] - grown[1]
        line = Comparison(MEMORY, "worse" if more > room else "within margin", None, grown[0], (0.0, grown[1] + room))
        text = f"Memory grows by {number(grown[0])} MiB after the first steps, the baseline's by {number(grown[1])} MiB"
        found.append((_finding(MEMORY, "Memory grows", text, more, room) if more > room else None, line))
    if not any(f for f, _ in found) and peaks[0] is not None and peaks[1] is not None:
        room = max(2 * params.memory_floor, 2 * params.memory * peaks[1])
        more = peaks[0] - peaks[1]
        line = Comparison(PEAK, "worse" if more > room else "within margin", None, peaks[0], (0.0, peaks[1] + room))
        text = f"Peak memory is {number(peaks[0])} MiB, the baseline's {number(peaks[1])} MiB"
        found.append((_finding(PEAK, "More memory", text, more, room) if more > room else None, line))
    cuda = [_last(run.get(CUDA)) for run in (pair.run, pair.base)]
    if cuda[0] is not None and cuda[1] is not None and cuda[1] > 0:
        room = max(1.0, params.memory * cuda[1])
        more = cuda[0] - cuda[1]
        line = Comparison(CUDA, "worse" if more > room else "within margin", None, cuda[0], (0.0, cuda[1] + room))
        text = f"Peak memory of the devices is {number(cuda[0])} MiB, the baseline's {number(cuda[1])} MiB"
        found.append((_finding(CUDA, "More device memory", text, more, room) if more > room else None, line))
    return [(f, line) for f, line in found]


def _last(series: Series | None) -> float | None:
    return None if series is None else float(series.value[-1])


def _growth(series: Series | None) -> float | None:
    """Return how far the last tenth lies above the second one, in MiB."""
    if series is None or len(series) < LEAST:
        return None
    tenth = len(series) // 10
    return float(np.median(series.value[-tenth:]) - np.median(series.value[tenth : 2 * tenth]))


def _finding(metric: str, title: str, text: str, more: float, room: float) -> Finding:
    return Finding(
        detector="cost_change",
        severity=Severity.WARNING,
        title=title,
        message=f"{text}.",
        metric=metric,
        evidence={"more_mb": more, "limit_mb": room},
        fixes=("Look for tensors kept in lists or caches, with their graphs: keep .item() or .detach().",),
    )


COMPARER = Comparer("cost_change", "Steps cost more", (TIME, MEMORY, PEAK), Params(), compare)
