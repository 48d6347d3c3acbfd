"""Keeps hooks out of what is compiled after the probe was attached: by ``torch.compile``, by ``torch.jit.script``.

Dynamo guards on the hooks of what it traced: one that comes and goes would compile the module twice.
TorchScript compiles hooks like any code, and refuses ours.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from .boundary import Hook

_compiled: weakref.WeakSet[nn.Module] = weakref.WeakSet()
_listeners: list[Callable[[], None]] = []
_original: list[tuple[Any, str, Callable[..., Any], Callable[..., Any]]] = []


def is_compiled(module: nn.Module) -> bool:
    """Tell whether `module` itself runs as a compiled graph."""
    return (
        "_orig_mod" in module._modules
        or getattr(module, "_compiled_call_impl", None) is not None
        or (bool(_compiled) and module in _compiled)
        or isinstance(module, torch.jit.ScriptModule)
    )


def listen(listener: Callable[[], None]) -> None:
    """Call `listener` whenever a module has been handed to ``torch.compile``, before anything is traced."""
    if not _listeners:
        for home, name, wrap in ((torch, "compile", _wrap), (torch.jit, "script", _wrap_script)):
            original = getattr(home, name)
            wrapped = wrap(original)
            _original.append((home, name, original, wrapped))
            setattr(home, name, wrapped)
    _listeners.append(listener)


def leave(listener: Callable[[], None]) -> None:
    """Stop calling `listener`; the last one to leave puts torch back as it was."""
    if listener not in _listeners:
        return
    _listeners.remove(listener)
    while _original and not _listeners:
        home, name, original, wrapped = _original.pop()
        if getattr(home, name) is wrapped:
            setattr(home, name, original)


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


def _wrap_script(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def script(obj: Any = None, *args: Any, **kwargs: Any) -> Any:
        if len(args) < 2:
            kwargs["_frames_up"] = kwargs.get("_frames_up", 0) + 1  # names are looked up in the caller's frame
        if not isinstance(obj, nn.Module):
            return original(obj, *args, **kwargs)
        with _without_hooks(obj):
            return original(obj, *args, **kwargs)

    return script


@contextmanager
def _without_hooks(model: nn.Module) -> Iterator[None]:
    """Take every hook of ours off `model` for a while."""
    kept = [
        (hooks, dict(hooks))
        for module in model.modules()
        for hooks in (module._forward_hooks, module._forward_pre_hooks)
        if any(isinstance(hook, Hook) for hook in hooks.values())
    ]
    try:
        for hooks, before in kept:
            for key, hook in before.items():
                if isinstance(hook, Hook):
                    del hooks[key]
        yield
    finally:
        for hooks, before in kept:
            hooks.clear()
            hooks.update(before)
