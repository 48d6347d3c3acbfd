"""skipped_batches: batches that the data loader gave and that were never trained on.

What it finds
    A loop that reads batches and drops them: a step that is indented out of the inner loop, ``next`` called twice,
    a condition that is wrong. Beside it, as an information, batches dropped before the first training step.
Algorithm
    Exact, from a smoke run: the hash of every batch's tensors as the DataLoader gave them, against the inputs of the
    training forwards and the labels of the loss in the same and the next steps. Only loaders whose batches do arrive
    as they were given are judged, and only batches between the first and the last that arrived: what a loader reads
    ahead, evaluates or skips on resume is not dropped.
Parameters
    share: least share of the batches that must be dropped for a warning.
    batches: least number of them.
False positives
    A loop that leaves out batches on purpose and often, by their length or content, or that ends each epoch after a
    few batches by a condition behind the reading of one more: at fewer than ten batches an epoch. Measured on 31
    healthy smoke runs of seven training scripts: none.
Misses
    Batches that are changed before they reach the model and whose labels no cross entropy sees, data without a
    DataLoader, and samples left out by the sampler or the data set, which look like a smaller data set. A loader that
    is made anew for each epoch, of which only the last batch is trained on. Batches that are never asked for: see
    ``repeated_batches``.
Reference
    Lightning-AI/pytorch-lightning#18780, OLMo#650 (data skipped at resume).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Detector, Skipped, needs_smoke

FACT = "smoke.batches"


@dataclass(frozen=True, slots=True)
class Params:
    """How many are a fault."""

    share: float = 0.1
    """Of the batches given; fewer may be a filter."""
    batches: int = 3
    """One or two are lost at the end of an epoch or of an evaluation."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding for each loader of which batches were dropped."""
    skip = needs_smoke(run)
    if skip is not None:
        return skip
    loaders = facts.table(run, FACT)
    if not loaders:
        return Skipped("no batch of a DataLoader arrived at the model as it was given")
    return [finding for loader in loaders if (finding := _judge(loader, params)) is not None]


def _judge(loader: dict[str, Any], params: Params) -> Finding | None:
    given, dropped, before = (int(loader.get(key, 0)) for key in ("given", "dropped", "skipped_at_start"))
    steps = [int(step) for step in loader.get("steps", ())]
    if dropped >= params.batches and dropped >= params.share * given:
        severity, text = (
            Severity.WARNING,
            f"{dropped} of {given} batches that the DataLoader gave were never trained on",
        )
    elif dropped or before:
        severity = Severity.INFO
        what = [f"{before} batches before the first training step"] * (before > 0)
        what += [f"{dropped} of {given} batches later"] * (dropped > 0)
        text = f"The DataLoader gave {' and '.join(what)} that were not trained on"
    else:
        return None
    return Finding(
        detector="skipped_batches",
        severity=severity,
        title="Batches read and not trained on",
        message=f"{text}{f', first before step {steps[0]}' if steps else ''}.",
        metric="smoke/batch_hash",
        start_step=steps[0] if steps else 0,
        end_step=steps[-1] if steps else 0,
        evidence={"given": given, "dropped": dropped, "skipped_at_start": before},
        fixes=(
            "Check the indentation of forward and backward in the loop, and conditions that continue.",
            "To resume, restore the sampler's state instead of reading batches and dropping them.",
        ),
    )


DETECTOR = Detector("skipped_batches", "Batches read and not trained on", (FACT,), Params(), detect)
