"""expert_utilization_drift: one expert of a mixture receives nearly all tokens."""

from __future__ import annotations

from typing import ClassVar

from trainscope.online.base import Signal
from trainscope.online.concentration import Concentration


class ExpertUtilizationDrift(Concentration):
    """Concentration of routing. Healthy runs were seen with single steps up to 0.87, hence three in a row.

    None of 12 healthy trainings was flagged (4,800 settled steps; 95 %: at most 7.7 alarms in 10,000). It comes 0 to 9
    steps before a tenfold loss, and mostly not before the loss is clearly up (docs/evidence.md, "Early warnings").

    A router that has not evened out after the warm-up is flagged: of five other healthy trainings (3,000 values of ten
    routers) one, at step 35, with all tokens on one expert.
    """

    signal: ClassVar[Signal] = "router_share"

    def __init__(self, threshold: float = 0.85, run_steps: int = 3, warmup: int = 30) -> None:
        super().__init__(threshold, run_steps, warmup)
