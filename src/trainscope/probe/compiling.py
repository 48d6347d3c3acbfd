"""Notices a module compiled after the probe was attached: no hook is traced into its graph.

Dynamo guards on the hooks of what it traced: one that comes and goes would compile the module twice.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

_compiled: weakref.WeakSet[nn.Module] = weakref.WeakSet()
_listeners: list[Callable[[], None]] = []
_original: list[tuple[Callable[..., Any], Callable[..., Any]]] = []


def is_compiled(module: nn.Module) -> bool:
    """Tell whether `module` itself runs as a compiled graph."""
    return (
        "_orig_mod" in module._modules
        or getattr(module, "_compiled_call_impl", None) is not None
        or (bool(_compiled) and module in _compiled)
    )


def listen(listener: Callable[[], None]) -> None:
    """Call `listener` whenever a module has been handed to ``torch.compile``, before anything is traced."""
    if not _listeners:
        original = torch.compile
        wrapped = _wrap(original)
        _original.append((original, wrapped))
        torch.compile = wrapped
    _listeners.append(listener)


def leave(listener: Callable[[], None]) -> None:
    """Stop calling `listener`; the last one to leave puts torch back as it was."""
    if listener not in _listeners:
        return
    _listeners.remove(listener)
    if not _listeners:
        original, wrapped = _original.pop()
        if torch.compile is wrapped:
            torch.compile = original


def _wrap(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def compile(model: Any = None, *args: Any, **kwargs: Any) -> Any:
        target = getattr(model, "__self__", model)
        if isinstance(target, nn.Module):
            _compiled.add(target)
            for listener in tuple(_listeners):
                listener()
        return original(model, *args, **kwargs)

    return compile
