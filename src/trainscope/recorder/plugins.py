"""User code that runs inside the recorder: metrics of one's own, and detectors of one's own.

The surface is frozen: `MetricPlugin` (``name``, ``compute``) and
:class:`~trainscope.online.base.AnomalyDetector` (``warmup``, ``update``).
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import nn

from trainscope.core.errors import ConfigError
from trainscope.online import AnomalyDetector


class MetricPlugin(ABC):
    """A metric of one's own, computed at every recorded step and kept in ``plugin_metrics.arrow``.

    A subclass sets `name` and implements `compute`. What it raises is logged once and costs only its own
    numbers.
    """

    name: ClassVar[str]
    """What its rows are filed under."""

    @abstractmethod
    def compute(self, model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> dict[str, float]:
        """Return metric names and values; called between backward and ``optimizer.step``.

        With several optimizers, `optimizer` is the list of them.
        """


def load_metrics(entries: Sequence[object]) -> list[MetricPlugin]:
    """Return the metric plug-ins that `entries` stand for: instances, classes, or dotted paths to either.

    Raises
    ------
    ConfigError
        If one cannot be found or made, or is of another kind; names the field and the entry.
    """
    found = []
    for number, entry in enumerate(entries):
        where = f"metric_plugins[{number}] = {entry!r}"
        plugin = _made(entry, where)
        if not isinstance(plugin, MetricPlugin):
            raise ConfigError(f"{where}: not a MetricPlugin")
        if not isinstance(getattr(plugin, "name", None), str):
            raise ConfigError(f"{where}: has no name (a class attribute)")
        found.append(plugin)
    return found


def load_detectors(entries: Sequence[object]) -> list[AnomalyDetector]:
    """Return the detectors that `entries` stand for, as :func:`load_metrics` does.

    Raises
    ------
    ConfigError
        If one cannot be found or made, or is of another kind; names the field and the entry.
    """
    found = []
    for number, entry in enumerate(entries):
        where = f"detector_plugins[{number}] = {entry!r}"
        detector = _made(entry, where)
        if not isinstance(detector, AnomalyDetector):
            raise ConfigError(f"{where}: not an AnomalyDetector")
        found.append(detector)
    return found


def _made(entry: object, where: str) -> object:
    found = find(entry, where) if isinstance(entry, str) else entry
    if not isinstance(found, type):
        return found
    try:
        return found()
    except TypeError as error:
        raise ConfigError(f"{where}: cannot be made without arguments ({error})") from None


def find(path: str, where: str) -> object:
    """Return what a dotted path names.

    Raises
    ------
    ConfigError
        If it names nothing; begins with `where`.
    """
    module, _, attribute = path.replace(":", ".").rpartition(".")
    if not module:
        raise ConfigError(f"{where}: expected a dotted path such as package.module.Class")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{where}: cannot be imported ({error})") from None
