"""What ``meta.json`` says about a training."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter


def describe(model: nn.Module, optimizers: Sequence[torch.optim.Optimizer]) -> dict[str, Any]:
    """Return model, optimizers and versions, fit for JSON."""
    config = getattr(model, "config", None)
    as_dict = getattr(config, "to_dict", None)
    return {
        "model_name": type(getattr(model, "_orig_mod", model)).__name__,
        "model_config": as_dict() if callable(as_dict) else {},
        "parameters": sum(p.numel() for p in model.parameters() if not isinstance(p, UninitializedParameter)),
        "optimizers": [
            {
                "name": type(optimizer).__name__,
                "groups": [
                    {k: v for k, v in group.items() if isinstance(v, (int, float, str, bool, type(None)))}
                    for group in optimizer.param_groups
                ],
            }
            for optimizer in optimizers
        ],
        "torch_version": str(torch.__version__),
        "python_version": platform.python_version(),
        "cuda_device": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }
