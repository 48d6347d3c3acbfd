"""Sees what runs a forward in another way: ``torch.compile`` and activation checkpointing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils import checkpoint

from .forwards import Hook
from .patches import replace
from .recorder import Recorder

Function = Callable[..., Any]


def install(recorder: Recorder) -> None:
    """Listen to both."""
    _compile(recorder)
    _checkpointing(recorder)


def _compile(recorder: Recorder) -> None:
    """Take hooks out of what is being compiled: they would break its graph."""

    def note(module: nn.Module) -> None:
        recorder.setting.compiled = True
        for inner in module.modules():
            hooks: dict[int, Any] = inner._forward_hooks
            for key in [key for key, hook in hooks.items() if isinstance(hook, Hook)]:
                del hooks[key]
        recorder.setting.forget_temporary()

    seen = recorder.guard.hook("compile", note)

    def make(original: Function) -> Function:
        def function(model: Any = None, *args: Any, **kwargs: Any) -> Any:
            target = getattr(model, "__self__", model)
            if isinstance(target, nn.Module):
                seen(target)
            elif model is not None:
                recorder.setting.compiled = True
            return original(model, *args, **kwargs)

        return function

    replace(torch, "compile", make)

    def method(original: Function) -> Function:
        def compile_(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            seen(self)
            return original(self, *args, **kwargs)

        return compile_

    replace(nn.Module, "compile", method)


def _checkpointing(recorder: Recorder) -> None:
    """Note checkpointed activations by the record that torch keeps of them: torch.compile knows the function itself."""
    frame = getattr(checkpoint, "_CheckpointFrame", None)
    if frame is None:
        return

    def make(original: Function) -> Function:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            recorder.setting.checkpointed = True
            original(self, *args, **kwargs)

        return __init__

    replace(frame, "__init__", make)
