"""The contract of every detector that judges one value at a time while training goes on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

Signal = Literal["loss", "router_share", "addressor_share"]


class AnomalyDetector(ABC):
    """Scores values as they come. Subclass it for a plug-in; this surface is frozen.

    A subclass sets `warmup` and implements `update`; nothing else is asked of it. `update` must not keep the
    training waiting: a few microseconds.
    """

    warmup: int = 0
    """Values it must see before it may fire."""
    signal: ClassVar[Signal] = "loss"
    """What it is fed: the raw loss, or the largest share of a router or addressor (one detector each)."""

    @abstractmethod
    def update(self, value: float) -> float | None:
        """Take the value of one step and return a score if it is an anomaly, None if not.

        A plug-in may be handed NaN or infinity.
        """
