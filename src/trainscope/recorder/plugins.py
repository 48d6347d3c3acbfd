"""User code that runs inside the recorder: metrics of one's own, and detectors of one's own.

The surface is frozen: `MetricPlugin` (``name``, ``compute``) and
:class:`~trainscope.online.base.AnomalyDetector` (``warmup``, ``update``).
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import torch
from torch import nn

from trainscope.core.errors import ConfigError

P = TypeVar("P")


class MetricPlugin(ABC):
    """A metric of one's own, computed at every recorded step and kept in ``plugin_metrics.arrow``.

    A subclass sets `name` and implements `compute`. What it raises is logged once and costs only its own numbers.
    """

    name: ClassVar[str]
    """What its rows are filed under."""

    @abstractmethod
    def compute(self, model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> dict[str, float]:
        """Return metric names and values; called between backward and ``optimizer.step``.

        With several optimizers, `optimizer` is the list of them.
        """


def load(entries: Sequence[Any], kind: type[P], field: str) -> list[P]:
    """Return the plug-ins that `entries` stand for: instances, classes, or dotted paths to either.

    Raises
    ------
    ConfigError
        If one cannot be found or made, or is of another kind; names the field and the entry.
    """
    return [_load(entry, kind, f"{field}[{number}]") for number, entry in enumerate(entries)]


def _load(entry: object, kind: type[P], where: str) -> P:
    found = _find(entry, where) if isinstance(entry, str) else entry
    if isinstance(found, type):
        if not issubclass(found, kind):
            raise ConfigError(f"{where} = {entry!r}: not a {kind.__name__}")
        try:
            found = found()
        except TypeError as error:
            raise ConfigError(f"{where} = {entry!r}: cannot be made without arguments ({error})") from None
    if not isinstance(found, kind):
        raise ConfigError(f"{where} = {entry!r}: not a {kind.__name__}")
    if isinstance(found, MetricPlugin) and not isinstance(getattr(found, "name", None), str):
        raise ConfigError(f"{where} = {entry!r}: has no name (a class attribute)")
    return found


def _find(path: str, where: str) -> object:
    module, _, attribute = path.replace(":", ".").rpartition(".")
    if not module:
        raise ConfigError(f"{where} = {path!r}: expected a dotted path such as package.module.Class")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{where} = {path!r}: cannot be imported ({error})") from None
