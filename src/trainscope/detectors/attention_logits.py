"""attention_logits: attention saturates: its logits grow until the softmax picks one key.

What it finds
    A layer whose largest attention logit stays far above what any healthy run shows. Every query then looks at one
    key, the gradient through the softmax is gone, and the loss only ends up worse: no loss rule sees it.
Algorithm
    From the recorder: the median of the largest logit over `window` sampled steps, against `most`. The gravest layer
    is named; others are counted.
Parameters
    most: largest logit that passes. Measured: healthy small models stay below 33, harmful ones reach 46 to 3,620.
    extreme: from here on it is an error.
    window: sampled steps of the median.
False positives
    Very wide heads, and tasks that need to pick exactly one key (copying).
Misses
    Attention that saturates below `most`; attention that the recorder cannot see (compiled, or fused kernels called
    by name).
Reference
    M. Wortsman et al., "Small-scale proxies for large-scale Transformer training instabilities", arXiv:2309.14322.
    M. Dehghani et al., "Scaling Vision Transformers to 22 Billion Parameters", arXiv:2302.05442 (QK-norm).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Lack, Skipped, number

LOGITS = "attn_logit_max"


@dataclass(frozen=True, slots=True)
class Params:
    """Logits, after the division by the root of the head's width."""

    most: float = 100.0
    """A softmax over logits 100 apart is one-hot in any precision."""
    extreme: float = 1_000.0
    """Ten times that."""
    window: int = 10
    """Sampled steps: one sequence with a sharp head is no collapse."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding that names the gravest layer."""
    if run.layers is None or LOGITS not in run.layers.metrics():
        return Skipped("needs attention recorded by the Python recorder", kind=Lack.RECORDING)
    layers = [(name, run.layers.series(name, LOGITS).finite()) for name in run.layers.layers()]
    layers = [(name, s) for name, s in layers if len(s) >= params.window]
    if not layers:
        return Skipped(f"needs {params.window} sampled steps of attention recorded by the Python recorder")
    over = [found for name, s in layers if (found := _over(name, s, params)) is not None]
    if not over:
        return []
    name, series, start, top = max(over, key=lambda found: found[3])
    more = (
        f" So are {len(over) - 1} other layers." if len(over) > 2 else " So is another layer." if len(over) > 1 else ""
    )
    peak = int(series.step[int(np.argmax(series.value))])
    return [
        Finding(
            detector="attention_logits",
            severity=Severity.ERROR if top >= params.extreme else Severity.WARNING,
            title="Attention saturates",
            message=f"The largest attention logit of {name} is above {number(params.most)} from step {start} on and "
            f"reaches {number(float(series.value.max()))}; healthy models stay below 50.{more}",
            metric=LOGITS,
            layer=name,
            start_step=start,
            end_step=int(series.step[-1]),
            peak_step=peak,
            evidence={"value": float(series.value.max()), "median": top, "layers": len(over)},
            fixes=(
                "Lower the learning rate or lengthen the warm-up.",
                "Normalise queries and keys (QK-norm), or cap the logits.",
            ),
        )
    ]


def _over(name: str, series: Series, params: Params) -> tuple[str, Series, int, float] | None:
    """Return (layer, series, first step over the limit, largest median), None if it stays under it."""
    medians = np.median(sliding_window_view(series.value, params.window), axis=1)
    if medians.max() <= params.most:
        return None
    begin = int(np.argmax(medians > params.most))
    first = begin + int(np.argmax(series.value[begin : begin + params.window] > params.most))
    return name, series, int(series.step[first]), float(medians.max())


DETECTOR = Detector("attention_logits", "Attention saturates", ("attention of a recorded run",), Params(), detect)
