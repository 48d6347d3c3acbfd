"""Takes the loss scale of a ``GradScaler`` out of what is recorded, without asking the device for it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def scale_of(scaler: Any) -> Tensor | float | None:
    """Return the current scale, as the scaler keeps it (a tensor on the device), None if it is switched off."""
    if scaler is None or not scaler.is_enabled():
        return None
    kept = getattr(scaler, "_scale", None)
    return kept if isinstance(kept, Tensor) else float(getattr(scaler, "_init_scale", 1.0))


def is_unscaled(scaler: Any, optimizer: torch.optim.Optimizer) -> bool:
    """Tell whether ``scaler.unscale_(optimizer)`` has been called since the last update."""
    # A defaultdict: looking with [] would add an entry to the scaler's own state.
    state = getattr(scaler, "_per_optimizer_states", {}).get(id(optimizer))
    return state is not None and getattr(state.get("stage"), "name", "READY") != "READY"
