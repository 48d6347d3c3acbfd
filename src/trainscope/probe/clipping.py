"""Notices gradient clipping, so that norms from before and after it are both true.

``torch.nn.utils.clip_grad_norm_`` ends in one function of its module that scales the gradients. That one is
wrapped while a probe listens, which also reaches callers that imported ``clip_grad_norm_`` before.
``clip_grad_value_`` has no such function: it is seen where it is called as ``torch.nn.utils.clip_grad_value_``.
Frameworks that clip with kernels of their own (DeepSpeed) are not seen.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.utils import clip_grad

_PLACES: tuple[tuple[Any, str], ...] = tuple(
    (module, name)
    for module, name in (
        (clip_grad, "_clip_grads_with_norm_"),
        (torch.nn.utils, "clip_grads_with_norm_"),
        (clip_grad, "clip_grad_value_"),
        (torch.nn.utils, "clip_grad_value_"),
        # torch before 2.6 has no inner function
        *(() if hasattr(clip_grad, "_clip_grads_with_norm_") else ((clip_grad, "clip_grad_norm_"),)),
        *(() if hasattr(clip_grad, "_clip_grads_with_norm_") else ((torch.nn.utils, "clip_grad_norm_"),)),
    )
    if hasattr(module, name)
)


class Listener(Protocol):
    """Told about every clipping; must not raise."""

    def before_clip(self, parameters: list[Tensor]) -> None:
        """Gradients are about to be scaled."""
        ...

    def after_clip(self, parameters: list[Tensor]) -> None:
        """Gradients have been scaled."""
        ...


_listeners: list[Listener] = []
_originals: list[tuple[Any, str, Callable[..., Any], Callable[..., Any]]] = []


def listen(listener: Listener) -> None:
    """Tell `listener` about every clipping from now on."""
    if not _listeners:
        for module, name in _PLACES:
            original = getattr(module, name)
            wrapped = _wrap(original)
            _originals.append((module, name, original, wrapped))
            setattr(module, name, wrapped)
    _listeners.append(listener)


def leave(listener: Listener) -> None:
    """Stop telling `listener`; the last one to leave puts torch back as it was."""
    if listener not in _listeners:
        return
    _listeners.remove(listener)
    if _listeners:
        return
    for module, name, original, wrapped in _originals:
        if getattr(module, name) is wrapped:  # else somebody wrapped it again: leave theirs, ours passes through
            setattr(module, name, original)
    _originals.clear()


def _wrap(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def clip(parameters: Tensor | Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return original(parameters, *args, **kwargs)
        chosen = [parameters] if isinstance(parameters, Tensor) else list(parameters)
        for listener in tuple(_listeners):
            listener.before_clip(chosen)
        result = original(chosen, *args, **kwargs)
        for listener in tuple(_listeners):
            listener.after_clip(chosen)
        return result

    return clip
