"""Catch broken machine-learning training runs before they burn GPU-days, and say why they broke."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainscope.core.config import TrainScopeConfig, load_config
    from trainscope.online.base import AnomalyDetector
    from trainscope.recorder.plugins import MetricPlugin
    from trainscope.recorder.scope import TrainScope
    from trainscope.recorder.stop import StopTraining

__version__ = "0.1.0"

__all__ = [
    "AnomalyDetector",
    "MetricPlugin",
    "StopTraining",
    "TrainScope",
    "TrainScopeConfig",
    "__version__",
    "load_config",
]

_HOMES = {
    "AnomalyDetector": "trainscope.online.base",
    "MetricPlugin": "trainscope.recorder.plugins",
    "StopTraining": "trainscope.recorder.stop",
    "TrainScope": "trainscope.recorder.scope",
    "TrainScopeConfig": "trainscope.core.config",
    "load_config": "trainscope.core.config",
}


def __getattr__(name: str) -> object:
    """Import a public name at its first use: torch and pydantic stay out until then."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
