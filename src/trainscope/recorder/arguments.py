"""What a training loop hands over, checked where it is handed over: a wrong argument is named."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from trainscope.core.config import TrainScopeConfig
from trainscope.core.errors import ConfigError, RecorderError

LARGEST = 2**63
"""First whole number that a column of whole numbers cannot hold."""
MOST_STEPS = 2**53
"""Largest step number: beyond, neither JSON nor a float has it exactly."""


def check_model(model: object) -> None:
    """See that `model` is one module.

    Raises
    ------
    RecorderError
        If it is not.
    """
    if not isinstance(model, nn.Module):
        raise RecorderError(
            f"model = {_short(model)}: expected one torch.nn.Module (several: a recorder each, or an nn.ModuleList)"
        )


def check_config(config: object) -> None:
    """See that `config` is a `TrainScopeConfig`.

    Raises
    ------
    ConfigError
        If it is not.
    """
    if not isinstance(config, TrainScopeConfig):
        raise ConfigError(
            f"config = {_short(config)}: expected a TrainScopeConfig; load_config makes one of a file or a dict"
        )


def optimizers_in(given: object, argument: str) -> tuple[Optimizer, ...]:
    """Return one optimizer or a sequence of them as a tuple; anything with ``param_groups`` is one.

    Raises
    ------
    RecorderError
        If there is none, or one of them is something else; names the argument.
    """
    if hasattr(given, "param_groups"):
        given = (given,)
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise RecorderError(f"{argument} = {_short(given)}: expected an optimizer or a list of them")
    if not given:
        raise RecorderError(f"{argument}: the list is empty")
    for number, optimizer in enumerate(given):
        if not hasattr(optimizer, "param_groups"):
            raise RecorderError(f"{argument}[{number}] = {_short(optimizer)}: not an optimizer (no param_groups)")
    return tuple(given)


def check_number(value: object, argument: str) -> None:
    """See that `value` is one number, or a tensor with one.

    Raises
    ------
    RecorderError
        If it is not; names the argument.
    """
    if isinstance(value, Tensor):
        if value.numel() != 1 or value.is_complex() or value.is_meta:
            raise RecorderError(f"{argument}: expected one real number, got shape {tuple(value.shape)}, {value.dtype}")
        return
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise RecorderError(f"{argument} = {_short(value)}: expected a number or a tensor with one") from None


def check_scaler(scaler: Any) -> None:
    """See that `scaler` is a ``GradScaler``, or None.

    Raises
    ------
    RecorderError
        If it is not.
    """
    if scaler is not None and not (hasattr(scaler, "is_enabled") and hasattr(scaler, "get_scale")):
        raise RecorderError(f"scaler = {_short(scaler)}: expected a GradScaler")


def whole_number(value: object, argument: str, *, least: int = -LARGEST, most: int = LARGEST - 1) -> int | None:
    """Return an optional whole number of any integer type.

    Raises
    ------
    RecorderError
        If it is something else, below `least` or above `most`; names the argument.
    """
    if value is None:
        return None
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise RecorderError(f"{argument} = {_short(value)}: expected a whole number") from None
    if not least <= number <= most:
        raise RecorderError(f"{argument} = {_short(value)}: expected a whole number from {least} to {most}")
    return number


def check_device(name: str | None) -> None:
    """See that tensors can be made on the device called `name`.

    Raises
    ------
    ConfigError
        If not.
    """
    if name is None:
        return
    try:
        usable = not torch.empty(0, device=name).is_meta
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        first = str(error).partition("\n")[0]
        raise ConfigError(f"device = {_short(name)}: cannot be used ({first[:120]})") from None
    if not usable:
        raise ConfigError(f"device = {_short(name)}: holds no numbers")


def _short(value: object) -> str:
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # a whole number of thousands of digits
        text = f"one {type(value).__name__} too long to show"
    return text if len(text) <= 60 else f"{text[:57]}..."
