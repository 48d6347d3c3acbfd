"""data_wait: a large part of each step is spent waiting for data.

What it finds
    A logged loading time that takes more than `share` of the step: an information.
Algorithm
    Direct comparison of two columns of the log, step by step, the first twentieth left out: what waits for data
    (``data_time`` and its spellings) and the step (``train/step_time``, ``time``, ``batch_time``). The median counts.
    Where the loading time is longer than the step, the step was timed without it, and the sum is the whole.
Parameters
    share: smallest share of the step.
False positives
    A log whose two columns are in different units; a step of less than a millisecond.
Misses
    A log that does not tell the two apart, which is most of them; workers that are slow and never waited for.
Reference
    The PyTorch performance tuning guide: asynchronous data loading (``num_workers``, ``pin_memory``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import tokens
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, number

LOADING = frozenset({
    "data time", "data load time", "data loading time", "dataload time", "dataloading time", "dataloader time",
    "data wait", "data wait time", "load time", "loader time", "batch load time", "data fetch time", "time data",
})  # fmt: skip
STEPPING = ("time", "batch time", "iter time", "step time", "total time")


@dataclass(frozen=True, slots=True)
class Params:
    """How long is long."""

    share: float = 0.2
    """Of the step."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return an information where the loader holds up the steps."""
    waited = next((s for name, s in run.series.items() if _bare(name) in LOADING and len(s)), None)
    if waited is None:
        return Skipped("needs data_time")
    stepped = run.get("train/step_time") or _named(run)
    if stepped is None:
        return Skipped("needs the time of a step beside data_time")
    _, a, b = np.intersect1d(waited.step, stepped.step, assume_unique=True, return_indices=True)
    step, wait, whole = waited.step[a], waited.value[a], stepped.value[b]
    keep = np.isfinite(wait) & np.isfinite(whole) & (wait >= 0.0) & (whole > 0.0) & (np.arange(len(a)) >= len(a) // 20)
    step, wait, whole = step[keep], wait[keep], whole[keep]
    if len(step) < 20:
        return Skipped(f"needs 20 steps with data_time and {stepped.name}, has {len(step)}")
    if np.mean(wait > whole) > 0.05:
        whole = whole + wait
    share = float(np.median(wait / whole))
    if share <= params.share:
        return []
    return [
        Finding(
            detector="data_wait",
            severity=Severity.INFO,
            title="Steps wait for data",
            message=(
                f"Waiting for data takes {share:.0%} of a step: {waited.name} is {number(float(np.median(wait)))} of "
                f"{number(float(np.median(whole)))} in the median."
            ),
            metric=waited.name,
            start_step=int(step[0]),
            end_step=int(step[-1]),
            peak_step=int(step[int(np.argmax(wait / whole))]),
            evidence={"share": share, "waited": float(np.median(wait)), "step": float(np.median(whole))},
            fixes=(
                "More loader workers, prefetching, and pinned memory.",
                "Move what is computed for every sample out of the loop: decode or tokenise once.",
            ),
        )
    ]


def _bare(name: str) -> str:
    return " ".join(w for w in tokens(name) if w not in ("train", "training", "perf", "s", "sec", "ms"))


def _named(run: Run) -> Series | None:
    found = {_bare(name): s for name, s in run.series.items() if len(s)}
    return next((found[name] for name in STEPPING if name in found), None)


DETECTOR = Detector("data_wait", "Steps wait for data", ("data_time", "train/step_time"), Params(), detect)
