"""non_finite: a metric turned NaN or infinite.

What it finds
    NaN, +Inf or -Inf in any recorded metric, train, eval or auxiliary.
Algorithm
    ``isfinite`` on every point. Metrics that are bad in one stretch, or begin within three logging
    intervals of each other, are one incident and one finding, named after the loss where it is among them.
    Gradients that overflowed under a loss scale above 1 and with a finite loss, in a step that the
    GradScaler refused, do not count: it tries larger scales on purpose. At a scale of 1 or less they
    overflow by themselves, and do. The recorder's own spike score, infinite by definition, never does.
Parameters
    None.
False positives
    Metrics that are undefined by construction, such as explained variance with constant returns.
    Metrics that are neither a loss, a gradient norm nor a learning rate are reported as info for
    that reason.
Misses
    A trainer that replaces the NaN before it logs it (Hugging Face `logging_nan_inf_filter`); see
    zero_loss, and the recorder for the raw loss. One batch whose gradient alone is not finite, where the
    GradScaler refused the step.
Reference
    IEEE 754. keras-team/keras#4848 and huggingface/trl#6702 for what users expect; torch.amp.GradScaler
    for refused steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainscope.core.finding import Finding, Severity
from trainscope.core.loss_scale import overflowed_on_purpose
from trainscope.core.metrics import LOSS_KINDS, Kind, kind
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped

_SERIOUS = LOSS_KINDS | {Kind.GRAD_NORM, Kind.LEARNING_RATE}
_SPIKE_SCORE, _AFTER_CLIP = "recorder/spike_score", "train/grad_norm_after_clip"


@dataclass(frozen=True, slots=True)
class Params:
    """Nothing to set: a non-finite value needs no threshold."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:  # noqa: ARG001
    """Return one finding for each incident: metrics that turn non-finite together are one."""
    if not any(len(s) for s in run.series.values()):
        return Skipped("needs any metric")
    bad = [_Bad(s, _bad_points(s, run)) for s in run.series.values() if s.name != _SPIKE_SCORE]
    bad = sorted((b for b in bad if len(b.at)), key=lambda b: (not b.serious, b.first, not b.is_loss))
    incidents: list[list[_Bad]] = []
    for one in bad:
        near = next((group for group in incidents if group[0].serious >= one.serious and group[0].touches(one)), None)
        if near is None:
            incidents.append([one])
        else:
            near.append(one)
    return [_finding(group[0], group[1:]) for group in incidents]


def _bad_points(series: Series, run: Run) -> NDArray[np.intp]:
    """Return where `series` is not finite and no loss scale made it so."""
    at = np.flatnonzero(~np.isfinite(series.value))
    if not len(at) or not (kind(series.name) is Kind.GRAD_NORM or series.name == _AFTER_CLIP):
        return at
    return at[~np.isin(series.step[at], overflowed_on_purpose(run))]


@dataclass(frozen=True, slots=True, eq=False)
class _Bad:
    """The non-finite points of one metric."""

    series: Series
    at: NDArray[np.intp]

    @property
    def first(self) -> int:
        return int(self.series.step[self.at[0]])

    @property
    def last(self) -> int:
        return int(self.series.step[self.at[-1]])

    @property
    def serious(self) -> bool:
        return kind(self.series.name) in _SERIOUS

    @property
    def is_loss(self) -> bool:
        return kind(self.series.name) is Kind.LOSS

    def touches(self, other: _Bad) -> bool:
        """Tell whether both are bad in one stretch, or begin within three logging intervals."""
        interval = int(np.median(np.diff(other.series.step))) if len(other.series) > 1 else 0
        return other.first <= self.last + 3 * interval and other.last >= self.first - 3 * interval


def _finding(worst: _Bad, others: list[_Bad]) -> Finding:
    series, bad = worst.series, worst.at
    share = len(bad) / len(series)
    ends_bad = bool(bad[-1] == len(series) - 1)
    lasting = Severity.ERROR if ends_bad or share > 0.05 else Severity.WARNING
    severity = lasting if worst.serious else Severity.INFO
    value = series.value[bad]
    word = "NaN" if np.isnan(value).all() else "infinite" if np.isinf(value).all() else "NaN or infinite"
    many = f"at {len(bad)} of {len(series)} points, steps {worst.first} to {worst.last}"
    where = f"at step {worst.first}" if len(bad) == 1 else many
    tail = " and stays so to the end" if ends_bad and len(bad) > 1 else ""
    names = sorted({o.series.name for o in others})
    rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
    also = f" So {'is' if len(names) == 1 else 'are'} {', '.join(names[:3])}{rest}." if names else ""
    return Finding(
        detector="non_finite",
        severity=severity,
        title="Non-finite value",
        message=f"{series.name} is {word} {where}{tail}.{also}",
        metric=series.name,
        start_step=min([worst.first, *(o.first for o in others)]),
        end_step=max([worst.last, *(o.last for o in others)]),
        peak_step=worst.first,
        evidence={
            "points": len(bad),
            "share": round(share, 6),
            "first_step": worst.first,
            "metrics": 1 + len(names),
        },
        fixes=(
            "Resume from the last checkpoint before this step; weights updated with NaN do not heal.",
            "Lower the learning rate or the loss scale, or use bf16 instead of fp16.",
            "Check the batch at this step for empty labels, zero-length sequences or log(0).",
        ),
    )


DETECTOR = Detector("non_finite", "Non-finite value", ("any metric",), Params(), detect)
