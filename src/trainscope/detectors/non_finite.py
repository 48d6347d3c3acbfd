"""non_finite: a metric turned NaN or infinite.

What it finds
    NaN, +Inf or -Inf in any recorded metric, train, eval or auxiliary.
Algorithm
    ``isfinite`` on every point; points less than five logging intervals apart are one event, and all
    events of one metric are one finding. The range runs from the first to the last of them.
Parameters
    None.
False positives
    Metrics that are undefined by construction, such as explained variance with constant returns.
    Metrics that are neither a loss, a gradient norm nor a learning rate are reported as info for
    that reason.
Misses
    A trainer that replaces the NaN before it logs it (Hugging Face `logging_nan_inf_filter`); see
    zero_loss, and the recorder for the raw loss.
Reference
    IEEE 754. keras-team/keras#4848 and huggingface/trl#6702 for what users expect.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import LOSS_KINDS, Kind, kind
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped

_SERIOUS = LOSS_KINDS | {Kind.GRAD_NORM, Kind.LEARNING_RATE}


@dataclass(frozen=True, slots=True)
class Params:
    """Nothing to set: a non-finite value needs no threshold."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:  # noqa: ARG001
    """Return one finding for each metric with a non-finite value."""
    if not any(len(s) for s in run.series.values()):
        return Skipped("needs any metric")
    return [_finding(s) for s in run.series.values() if not np.isfinite(s.value).all()]


def _finding(series: Series) -> Finding:
    bad = np.flatnonzero(~np.isfinite(series.value))
    first, last = int(series.step[bad[0]]), int(series.step[bad[-1]])
    share = len(bad) / len(series)
    ends_bad = bool(bad[-1] == len(series) - 1)
    serious = kind(series.name) in _SERIOUS
    severity = (
        Severity.INFO if not serious else Severity.ERROR if ends_bad or share > 0.05 else Severity.WARNING
    )
    word = (
        "NaN"
        if np.isnan(series.value[bad]).all()
        else "infinite"
        if np.isinf(series.value[bad]).all()
        else "NaN or infinite"
    )
    where = (
        f"at step {first}"
        if len(bad) == 1
        else f"at {len(bad)} of {len(series)} points, steps {first} to {last}"
    )
    tail = " and stays so to the end" if ends_bad and len(bad) > 1 else ""
    return Finding(
        detector="non_finite",
        severity=severity,
        title="Non-finite value",
        message=f"{series.name} is {word} {where}{tail}.",
        metric=series.name,
        start_step=first,
        end_step=last,
        peak_step=first,
        evidence={"points": len(bad), "share": round(share, 6), "first_step": first},
        fixes=(
            "Resume from the last checkpoint before this step; weights updated with NaN do not heal.",
            "Lower the learning rate or the loss scale, or use bf16 instead of fp16.",
            "Check the batch at this step for empty labels, zero-length sequences or log(0).",
        ),
    )


DETECTOR = Detector("non_finite", "Non-finite value", ("any metric",), Params(), detect)
