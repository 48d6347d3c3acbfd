"""One step on its way through the recorder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trainscope.probe import Measurement
from trainscope.recorder.live import Spike


@dataclass(slots=True, eq=False)
class Row:
    """A step that is measured, and not yet stored."""

    step: int
    measurement: Measurement
    batch_index: int | None
    random: dict[str, Any]
    """State of the generators before the step's forward."""
    loss: float | None = None
    """None while it is a tensor among the measurement's vectors."""
    scalars: dict[str, float | int | bool | None] = field(default_factory=dict)
    plugin_rows: list[tuple[str, str, float]] = field(default_factory=list)
    spike: Spike | None = None
    noise_growth: float | None = None
    """Times as large as ever before the noise of the loss is, where that is told at this step."""
    loss_judged: bool = False
    rest_judged: bool = False
    told: bool = False
