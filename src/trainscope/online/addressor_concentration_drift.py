"""addressor_concentration_drift: a memory's addressing locks onto one slot."""

from __future__ import annotations

from typing import ClassVar

from trainscope.online.base import Signal
from trainscope.online.concentration import Concentration


class AddressorConcentrationDrift(Concentration):
    """Concentration of addressing over the slots of a memory bank.

    None of 12 healthy trainings was flagged (4,800 settled steps; 95 %: at most 7.7 alarms in 10,000). It comes 0 to 11
    steps before a tenfold loss, and mostly not before the loss is clearly up (docs/evidence.md, "Early warnings").
    """

    signal: ClassVar[Signal] = "addressor_share"

    def __init__(self, threshold: float = 0.6, run_steps: int = 3, warmup: int = 30) -> None:
        super().__init__(threshold, run_steps, warmup)
