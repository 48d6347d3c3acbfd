"""Runs, findings and stories made by hand: what broken runs share is tested apart from the detectors."""

from __future__ import annotations

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run, Series
from trainscope.diagnosis.case import Case
from trainscope.diagnosis.signs import Cause, Explanation, Sign, Stage, Story

STAGES = {
    "learning_rate": Stage.SCHEDULE,
    "train/grad_norm": Stage.GRADIENT,
    "train/loss": Stage.LOSS,
    "update_ratio": Stage.UPDATE,
}


def loss_of(steps=200, *, onset=None, height=2.0, every=1, scale=1.0):
    step = np.arange(0, steps, every)
    value = scale * np.full(len(step), 2.0)
    if onset is not None:
        value[step >= onset] = scale * height
    return Series("train/loss", step, value)


def stable(name, config=None, *, steps=200, scale=1.0):
    run = Run(name, f"runs/{name}", "csv", {"train/loss": loss_of(steps, scale=scale)}, config or {})
    return Case(run, judged=("spikes",))


def broken(name, config=None, *, signs=(("train/loss", 100, "spikes", None),), cause=None, loss=None, steps=200):
    """Return a run with one incident; `signs` are (signal, step, detector, layer), the loss's last."""
    signs = tuple(Sign(s, STAGES[n], n, "rose", where=w, detector=d) for n, s, d, w in signs)
    loss_step = next((s.step for s in signs if s.stage is Stage.LOSS), None)
    onset = min(s.step for s in signs)
    explanations = () if cause is None else (Explanation(cause, f"because of {cause}", 0.8),)
    story = Story(signs, onset, max(s.step for s in signs), loss_step, explanations=explanations)
    findings = tuple(
        Finding(s.detector, Severity.WARNING, "Trouble", "It broke.", s.signal, start_step=s.step)
        for s in signs
        if s.detector is not None
    )
    series = loss_of(steps, onset=onset, height=4.0) if loss is None else loss
    run = Run(name, f"runs/{name}", "csv", {"train/loss": series}, config or {})
    return Case(run, findings, (story,), judged=("spikes",))


RATE_FIRST = (
    ("learning_rate", 96, "lr_schedule", None),
    ("train/grad_norm", 98, None, None),
    ("train/loss", 100, "spikes", None),
)
LOSS_ONLY = (("train/loss", 100, "divergence", None),)

__all__ = ["LOSS_ONLY", "RATE_FIRST", "Cause", "broken", "loss_of", "stable"]
