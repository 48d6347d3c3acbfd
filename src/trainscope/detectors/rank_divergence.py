"""rank_divergence: processes that should hold the same gradients or weights do not, or do the same work twice.

What it finds
    Data-parallel training whose ranks step with different gradients, or whose weights have drifted apart: a
    reduction that is missing, a parameter outside DDP, a last micro-batch that is not synchronised, bad hardware.
    Ranks with the same weights that all train on the very same batches: nobody shards the data.
Algorithm
    Exact up to rounding, from a smoke run of several ranks: the largest relative difference of any parameter's
    norm between ranks. Sharded parameters are not compared. Batches by hash, at every step, where all weights are
    the same.
Parameters
    gradient: largest relative difference of a gradient norm.
    weight: the same of a weight norm.
False positives
    Methods that let ranks drift apart on purpose (local SGD, federated averaging).
Misses
    Differences that leave every norm as it is, and buffers: running statistics of batch norms that nobody brings
    together, which torchvision does on purpose.
Reference
    microsoft/DeepSpeed#7985 (gradients differ by 3.8 % between ranks).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Detector, Lack, Skipped, needs_smoke, number

GRADIENT, WEIGHT = "smoke/rank_gradient_spread", "smoke/rank_weight_spread"
BATCH = "smoke/rank_same_batch"
LEAST = 5


@dataclass(frozen=True, slots=True)
class Params:
    """What is more than rounding."""

    gradient: float = 1e-3
    """An all-reduce gives all ranks the same bits; norms are summed in single precision."""
    weight: float = 1e-4
    """Weights that had the same bits in the beginning keep them."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding for gradients that differ between ranks, and one for weights."""
    skip = needs_smoke(run, GRADIENT, WEIGHT)
    if skip is not None:
        return Skipped("needs a smoke run of several ranks", kind=Lack.RECORDING)
    findings = []
    for name, what, limit in ((GRADIENT, "gradients", params.gradient), (WEIGHT, "weights", params.weight)):
        spread = run.get(name)
        if spread is None:
            continue
        off = np.flatnonzero(spread.value > limit)
        if len(off) < 2:
            continue
        worst = int(np.argmax(spread.value))
        findings.append(
            Finding(
                detector="rank_divergence",
                severity=Severity.ERROR,
                title=f"Ranks hold different {what}",
                message=(
                    f"The {what} of the ranks differ by up to {number(100 * float(spread.value[worst]))} % of a norm, "
                    f"at {len(off)} of {len(spread)} steps."
                ),
                metric=name,
                start_step=int(spread.step[off[0]]),
                end_step=int(spread.step[off[-1]]),
                peak_step=int(spread.step[worst]),
                evidence={"spread": float(spread.value[worst]), "limit": limit, "steps": len(off)},
                fixes=(
                    "Check that every parameter is inside DDP or FSDP, and where no_sync ends.",
                    "Seed all ranks alike before the model is built.",
                ),
            )
        )
    return findings + _same_batches(run)


def _same_batches(run: Run) -> list[Finding]:
    same, weight = run.get(BATCH), run.get(WEIGHT)
    # Under tensor parallelism ranks share batches on purpose, and hold different weights.
    if same is None or len(same) < LEAST or not same.value.all() or weight is None or weight.value.any():
        return []
    return [
        Finding(
            detector="rank_divergence",
            severity=Severity.WARNING,
            title="Ranks train on the same batches",
            message=f"All ranks trained on the very same batches at all {len(same)} steps.",
            metric=BATCH,
            start_step=int(same.step[0]),
            end_step=int(same.step[-1]),
            evidence={"steps": len(same)},
            fixes=("Give the loader a DistributedSampler, or each rank a generator with a seed of its own.",),
        )
    ]


DETECTOR = Detector("rank_divergence", "Ranks differ", (GRADIENT, WEIGHT), Params(), detect)
