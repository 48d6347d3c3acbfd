"""trainscope's own answers, as somebody who watches a run gets them: from the log so far, and live."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from planting import LOSS_EVENTS

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run, Series
from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge
from trainscope.online import make_detector

FloatArray = NDArray[np.float64]
CHOSEN = configure(Settings())
LOOK = 100
"""Steps between two looks at a healthy log."""
OF_THE_LOSS = LOSS_EVENTS | {"oscillation"}
"""Detectors of a loss that rises or grows noisy."""


def log_of(loss: FloatArray) -> Run:
    """Return a run that logged its loss at every step, 0 first."""
    return Run("bench", "bench", "bench", {"train/loss": Series("train/loss", np.arange(len(loss)), loss)})


def warnings(loss: FloatArray) -> list[Finding]:
    """Return what the detectors say at their defaults of a log that ends with `loss`, warnings and errors only."""
    return [f for f in judge(log_of(loss), CHOSEN).findings if f.severity >= Severity.WARNING]


def spans(findings: list[Finding]) -> list[tuple[int, int]]:
    return [(f.start_step or 0, f.end_step or 0) for f in findings]


def found(findings: list[Finding], onset: int, slack: int = 20) -> Finding | None:
    """Return the finding about the loss that reaches the onset of a fault, give or take `slack` steps, None if none."""
    near = [f for f in findings if f.detector in OF_THE_LOSS and (f.end_step or 0) >= onset - slack]
    return min(near, key=lambda f: abs((f.start_step or 0) - onset), default=None)


def live_alarms(loss: FloatArray, name: str = "changepoint") -> list[int]:
    """Return the steps at which the recorder's live detector alarms, at its defaults."""
    detector = make_detector(name, {})
    return [i for i, v in enumerate(loss) if detector.update(float(v)) is not None]
