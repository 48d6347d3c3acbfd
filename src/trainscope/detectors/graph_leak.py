"""graph_leak: computation graphs are kept alive, and memory grows with them.

What it finds
    A history list that holds losses, logits or routing statistics with their graphs, where their numbers were
    meant.
Algorithm
    From a smoke run: how many of the sampled autograd graphs still live at the end of each step. A healthy training
    has 0 to 3; more than ``graphs``, still growing in the last third, is a leak.
Parameters
    graphs: most graphs that may live on.
False positives
    Training through time with a long window (truncated back-propagation).
Misses
    Leaks of plain tensors and of Python objects: see the comparison of memory with a baseline.
Reference
    PyTorch FAQ, "My model reports cuda runtime error(2): out of memory": do not accumulate history.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Detector, Skipped, needs_smoke, number

GRAPHS, MEMORY = "memory/live_graphs", "memory/cpu_mb"


@dataclass(frozen=True, slots=True)
class Params:
    """How many graphs are too many."""

    graphs: int = 6
    """Twice what a healthy training has."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding where graphs pile up."""
    skip = needs_smoke(run, GRAPHS)
    if skip is not None:
        return skip
    graphs, memory = run.get(GRAPHS), run.get(MEMORY)
    if graphs is None or len(graphs) < 10:
        return Skipped(f"needs 10 steps of {GRAPHS}")
    cut = 2 * len(graphs) // 3
    last, before = float(graphs.value[-1]), float(np.max(graphs.value[:cut]))
    if last <= params.graphs or last <= before:
        return []
    start = int(graphs.step[np.argmax(graphs.value > 3)])
    grown = "" if memory is None else f"; memory grew by {number(float(memory.value[-1] - memory.value[0]))} MiB"
    return [
        Finding(
            detector="graph_leak",
            severity=Severity.ERROR,
            title="Computation graphs kept alive",
            message=f"{number(last)} autograd graphs are still alive at the last step, and their number grows{grown}.",
            metric=GRAPHS,
            start_step=start,
            end_step=int(graphs.step[-1]),
            evidence={"graphs": last},
            fixes=("Keep loss.item() or loss.detach(), not the loss; evaluate under torch.no_grad().",),
        )
    ]


DETECTOR = Detector("graph_leak", "Computation graphs kept alive", (GRAPHS, MEMORY), Params(), detect)
