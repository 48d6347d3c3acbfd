"""What a text is and says, and the loss that all of them print."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

Points = list[tuple[int, float]]


@dataclass
class Printed:
    """A text and what it says."""

    text: str = ""
    train: Points = field(default_factory=list)
    evaluation: Points = field(default_factory=list)
    axis: str = "step"
    reward: Points = field(default_factory=list)


def loss_at(step: int) -> float:
    """Return a loss that falls and trembles, to four decimals."""
    return round(2.0 + 6.0 * math.exp(-step / 60) + 0.05 * math.sin(7.3 * step), 4)
