"""How much work a step does, where a log says it: tokens, samples or the length of its sequences."""

from __future__ import annotations

import numpy as np

from trainscope.core.metrics import tokens
from trainscope.core.run import FloatArray, Run, Series

PER_STEP = frozenset({
    "batch size", "global batch size", "seq len", "seq length", "sequence length", "tokens per step",
    "tokens per batch", "batch tokens", "num tokens", "ntokens", "seqlen",
})  # fmt: skip
"""Names of what one step does."""
COUNTERS = frozenset({
    "consumed samples", "consumed tokens", "total tokens", "tokens seen", "num input tokens seen", "samples seen",
    "seen tokens", "seen samples", "num tokens seen", "throughput total tokens",
})  # fmt: skip
"""Names of what all steps so far have done."""


def work_at(run: Run, step: np.ndarray) -> FloatArray | None:
    """Return (n,) what a step does at the given steps, in whatever unit the log has; None where it does not say."""
    for name, series in run.series.items():
        words = " ".join(tokens(name))
        finite = series.finite()
        if len(finite) < 3 or not (words in PER_STEP or words in COUNTERS):
            continue
        if words in COUNTERS:
            done = np.diff(finite.value) / np.diff(finite.step)
            finite = Series(name, finite.step[1:], done)
        if (finite.value > 0).all():
            return np.asarray(np.interp(step, finite.step, finite.value))
    return None
