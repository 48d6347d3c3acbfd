"""addressor_concentration_drift: a memory's addressing locks onto one slot."""

from __future__ import annotations

from typing import ClassVar

from trainscope.online.base import Signal
from trainscope.online.concentration import Concentration


class AddressorConcentrationDrift(Concentration):
    """Concentration of addressing over the slots of a memory bank."""

    signal: ClassVar[Signal] = "addressor_share"

    def __init__(self, threshold: float = 0.6, run_steps: int = 3, warmup: int = 30) -> None:
        super().__init__(threshold, run_steps, warmup)
