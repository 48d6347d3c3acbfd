"""What ``meta.json`` says about a training."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
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
                "groups": [_settings(group) for group in optimizer.param_groups],
            }
            for optimizer in optimizers
        ],
        "torch_version": str(torch.__version__),
        "python_version": platform.python_version(),
        "cuda_device": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def _settings(group: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an optimizer's group sets: numbers, words, and short rows of numbers such as Adam's betas."""
    found: dict[str, Any] = {}
    for key, value in group.items():
        row = value if isinstance(value, (tuple, list)) else (value,)
        plain = [v.item() if isinstance(v, Tensor) and v.numel() == 1 else v for v in row]
        if key != "params" and all(isinstance(v, (int, float, str, bool, type(None))) for v in plain):
            found[key] = plain if isinstance(value, (tuple, list)) else plain[0]
    return found
