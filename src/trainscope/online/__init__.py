"""Detectors that judge one value at a time, live; ``ONLINE`` is the whole registry."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from trainscope.core.errors import ConfigError, did_you_mean
from trainscope.online.addressor_concentration_drift import AddressorConcentrationDrift
from trainscope.online.base import AnomalyDetector, Signal
from trainscope.online.changepoint import ChangePoint
from trainscope.online.expert_utilization_drift import ExpertUtilizationDrift
from trainscope.online.non_finite import NonFinite
from trainscope.online.percentile import Percentile
from trainscope.online.z_score import ZScore

ONLINE: Mapping[str, type[AnomalyDetector]] = MappingProxyType(
    {
        "changepoint": ChangePoint,
        "z_score": ZScore,
        "percentile": Percentile,
        "expert_utilization_drift": ExpertUtilizationDrift,
        "addressor_concentration_drift": AddressorConcentrationDrift,
    }
)
"""Name in ``TrainScopeConfig.detector`` to class. `NonFinite` is not chosen: it always runs."""

MOST_VALUES = 100_000
"""Of a window, in steps: it is sorted while the training waits."""

__all__ = ["ONLINE", "AnomalyDetector", "NonFinite", "Signal", "make_detector"]


def make_detector(name: str, params: Mapping[str, Any]) -> AnomalyDetector:
    """Return a fresh detector.

    Raises
    ------
    ConfigError
        If there is none of that name, or a parameter is unknown, of a wrong type or out of range.
    """
    kind = ONLINE.get(name)
    if kind is None:
        raise ConfigError(f"detector = {name!r}: no such detector{did_you_mean(name, ONLINE)}")
    known = inspect.signature(kind).parameters
    for key, value in params.items():
        if key not in known:
            raise ConfigError(f"detector.{key}: {name} has no such parameter{did_you_mean(key, known)}")
        default = known[key].default
        allowed = (int, float) if isinstance(default, float) else (type(default),)
        if isinstance(value, bool) != isinstance(default, bool) or not isinstance(value, allowed):
            raise ConfigError(f"detector.{key} = {value!r}: expected {type(default).__name__}")
        if not isinstance(value, bool) and (value < 0 or value != value):
            raise ConfigError(f"detector.{key} = {value!r}: must not be negative")
        if isinstance(value, int) and value > MOST_VALUES:
            raise ConfigError(f"detector.{key} = {value!r}: must not exceed {MOST_VALUES}")
    try:
        return kind(**params)
    except ValueError as error:
        raise ConfigError(f"detector.{error}") from None
