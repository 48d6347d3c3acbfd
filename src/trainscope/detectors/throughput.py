"""throughput: training became slower and stayed slower for a while.

What it finds
    A stretch of at least 5 % of the run (10 points) in which a step takes `slower` times as long as the
    run had shown it can be: a jump, a creep, or a slow part in the middle.
Algorithm
    Step time in seconds, else the inverse of tokens, samples or steps per second, else the time stamps.
    Medians of about 50 blocks, so that evaluations and checkpoints do not count; the reference is the
    median block of the fastest half. A block is slow when it is `slower` times the reference, and the
    stretch must be 5 standard errors of the blocks. Slow first blocks (compilation) are ignored. A
    stretch that cost less than `lost_seconds` in all is an information, where the log tells seconds, unless
    it is the last quarter of the run or more, and 2.5 times as slow: no neighbour on a machine is that steady.
    Where the log says what a step does (tokens, sequence length, batch size), one that does as much more is not slow.
Parameters
    slower: smallest ratio of the step time.
    lost_seconds: smallest loss of time worth a warning.
False positives
    A curriculum of growing sequence length whose length is not logged. Shared machines.
Misses
    A run that is slow from the first step to the last: compare with a baseline. A creep of less than `slower` in all.
Reference
    unsloth#1321 and wandb#3701 for the kind of incident.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.robust import block_medians, difference_sigma, stretches
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, number
from trainscope.detectors.engine.workload import work_at

STEADY = 2.5
"""Ratio from which a slow end of a run counts however short the run is; of 260 recordings on a machine that others
kept busy the slowest such end took 2.15 times as long."""
_RATES = ("train/tokens_per_second", "train/samples_per_second", "train/steps_per_second")


@dataclass(frozen=True, slots=True)
class Params:
    """How much slower counts."""

    slower: float = 1.4
    """Ratio of step times; shared runners vary by 10 to 20 %."""
    lost_seconds: float = 30.0
    """A run of a minute on a machine that does something else as well is no news."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return the longest slow stretch, if there is one."""
    if run.get("train/cpu_step_time") is not None:
        return Skipped("the wall time of a smoke run on a shared machine says little")
    source = _step_time(run)
    if source is None:
        return Skipped("needs train/step_time, train/tokens_per_second or time stamps")
    name, series, factor = source
    if len(series) < 30:
        return Skipped(f"needs 30 points of {name}, has {len(series)}")
    found = _slow(series, params.slower * factor)
    if found is None or (name not in _RATES and _does_more(run, series, *found, params.slower)):
        return []
    return [_finding(name, series, *found, params.lost_seconds)]


def _does_more(run: Run, series: Series, begin: int, end: int, usual: float, level: float, slower: float) -> bool:
    """Tell whether the steps of a slow stretch are not slow for the tokens or samples that the log says they have."""
    work = work_at(run, series.step)
    if work is None:
        return False
    fast = np.flatnonzero(series.value <= usual)
    more = float(np.median(work[begin : end + 1]) / np.median(work[fast]))
    return level / usual < slower * more


def _step_time(run: Run) -> tuple[str, Series, float] | None:
    """Return (metric, seconds per step or an inverse rate, caution factor)."""
    for name in ("train/step_time", "train/step_time_ms"):
        measured = run.get(name)
        if measured is not None:
            return name, _positive(measured.step, measured.value), 1.0
    for name in _RATES:
        rate = run.get(name)
        if rate is not None and len(rate) >= 30:
            positive = rate.finite()
            keep = positive.value > 0
            return name, _positive(positive.step[keep], 1.0 / positive.value[keep]), 1.0
    stamped = max((s for s in run.series.values() if s.time is not None), key=len, default=None)
    if stamped is None or stamped.time is None or run.x_axis == "row" or len(stamped) < 31:
        return None
    seconds = np.diff(stamped.time) / np.diff(stamped.step)
    return "time per step (time stamps)", _positive(stamped.step[1:], seconds), 1.15


def _positive(step: np.ndarray, value: np.ndarray) -> Series:
    keep = np.isfinite(value) & (value > 0)
    return Series("step_time", step[keep], value[keep])


def _slow(series: Series, slower: float) -> tuple[int, int, float, float] | None:
    """Return (first index, last index, usual, slow) of the longest slow stretch."""
    n = len(series)
    size = max(3, n // 50)
    blocks = block_medians(series.value, size)
    usual = float(np.median(np.sort(blocks)[: max(2, len(blocks) // 2)]))
    noise = max(difference_sigma(blocks), 1e-9 * usual)
    slow = blocks > slower * usual
    slow[: max(1, len(blocks) // 20)] = False
    edges = stretches(slow)
    spans = [(int(a), int(b)) for a, b in edges]
    if not spans:
        return None
    begin, end = max(spans, key=lambda s: s[1] - s[0])
    level = float(np.median(blocks[begin:end]))
    long_enough = end - begin >= max(2, len(blocks) // 20) and (end - begin) * size >= 10
    if not long_enough or level - usual < 5.0 * noise:
        return None
    if len(spans) > 3 and sum(b - a for a, b in spans) > 2 * (end - begin):
        return None
    return begin * size, min(n, end * size if end < len(blocks) else n) - 1, usual, level


def _finding(
    name: str, series: Series, begin: int, end: int, usual: float, level: float, lost_seconds: float
) -> Finding:
    start, last, ratio = int(series.step[begin]), int(series.step[end]), level / usual
    to_end = end >= len(series) - 2
    lasts = to_end and ratio >= STEADY and 4 * (last - start) >= int(series.step[-1] - series.step[0])
    lost = None if name in _RATES else (level - usual) * (last - start + 1) / (1000.0 if name.endswith("_ms") else 1.0)
    still = "to the end" if to_end else f"until step {last}"
    inverse = name.endswith("_per_second")
    was, now = (1.0 / usual, 1.0 / level) if inverse else (usual, level)
    return Finding(
        detector="throughput",
        severity=Severity.INFO if lost is not None and lost < lost_seconds and not lasts else Severity.WARNING,
        title="Training slowed down",
        message=(
            f"A step takes {number(ratio)} times as long from step {start} {still}: {name} went from {number(was)} "
            f"to {number(now)}."
        ),
        metric=name if "/" in name else None,
        start_step=start,
        end_step=last,
        peak_step=start,
        evidence={"before": was, "after": now, "ratio": ratio} | ({} if lost is None else {"lost_seconds": lost}),
        fixes=(
            "Look at the data loader, logging and checkpointing at that time, and at other jobs on the machine.",
            "A creep points to a growing list, cache or graph; look at memory.",
        ),
    )


DETECTOR = Detector("throughput", "Training slowed down", ("train/step_time", *_RATES), Params(), detect)
