"""Where the recorder listens to backward, clipping and the GradScaler."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grad
from torch.optim import Optimizer

from .guard import opaque
from .patches import replace
from .recorder import Recorder
from .window import Clip

_RAW = "_trainscope_raw"
Function = Callable[..., Any]


def install(recorder: Recorder) -> None:
    """Install them all."""
    for hook in (_backward, _clipping, _scaler):
        hook(recorder)


def _backward(recorder: Recorder) -> None:
    def note(tensors: Any) -> None:
        recorder.window.versions = versions(recorder.tracked)
        first = tensors[0] if isinstance(tensors, Sequence) and len(tensors) else tensors
        if not isinstance(first, Tensor):
            recorder.before_backward(None, None, None)
            return
        raw, divisor = getattr(first, _RAW, (None, divisor_of(first)))
        recorder.before_backward(first, raw, divisor)

    seen = recorder.guard.hook("backward", note)

    def make(original: Function) -> Function:
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            # A backward inside a backward is the second run of activation checkpointing.
            if torch.compiler.is_compiling() or recorder.inside_backward or not recorder.wakes():
                return original(tensors, *args, **kwargs)
            seen(tensors)
            recorder.inside_backward += 1
            try:
                return original(tensors, *args, **kwargs)
            finally:
                recorder.inside_backward -= 1

        return opaque(backward)

    replace(torch.autograd, "backward", make)


def versions(optimizers: Iterable[Optimizer]) -> int:
    """Return how often all weights together have been changed in place."""
    return sum(p._version for o in list(optimizers) for group in o.param_groups for p in group["params"])


def divisor_of(loss: Tensor) -> float | None:
    """Return the number that a loss was divided by last (or 1 / the factor), None if it was not."""
    node = loss.grad_fn
    kind = type(node).__name__
    if kind not in ("DivBackward0", "MulBackward0"):
        return None
    # What a script's own hook unpacks may be given out once only.
    if getattr(getattr(node, "_raw_saved_other", None), "unpack_hook", None) is not None:
        return None
    other = getattr(node, "_saved_other", None)
    value = float(other) if isinstance(other, Tensor) and other.numel() == 1 else 0.0
    if kind == "MulBackward0" and value:
        value = round(1 / value, 9)
    return value


def _clipping(recorder: Recorder) -> None:
    before = recorder.guard.hook("clipping", recorder.before_clip)

    def note(result: Any, limit: Any, scaled: bool) -> None:
        norm = float(_whole(result)) if isinstance(result, Tensor) else float("nan")
        bound = None if limit is None else float(limit)
        recorder.window.clips.append(Clip(bound, norm, recorder.window.backward_calls, scaled))

    after = recorder.guard.hook("clipping result", note)

    def make(original: Function, *, by_norm: bool) -> Function:
        def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or not recorder.active[0]:
                return original(parameters, *args, **kwargs)
            chosen = [parameters] if isinstance(parameters, Tensor) else list(parameters)
            before(chosen)
            window = recorder.window
            scaled = window.scale is not None and not window.unscaled
            result = original(chosen, *args, **kwargs)
            after(result, (args[0] if args else kwargs.get("max_norm")) if by_norm else None, scaled)
            return result

        return clip

    for name in ("clip_grad_norm_", "clip_grad_value_"):
        replace(clip_grad, name, functools.partial(make, by_norm=name == "clip_grad_norm_"))
        setattr(torch.nn.utils, name, getattr(clip_grad, name))


def _whole(norm: Tensor) -> Tensor:
    """Return a norm as this rank has it; over shards it is not yet added up, and no collective is made here."""
    return norm.to_local() if hasattr(norm, "to_local") else norm


def _scaler(recorder: Recorder) -> None:
    scaler = torch.amp.GradScaler

    def note(loss: Any, result: Any, scale: float) -> None:
        recorder.window.scale = scale
        if isinstance(loss, Tensor) and isinstance(result, Tensor):
            setattr(result, _RAW, (loss.detach(), divisor_of(loss)))

    seen = recorder.guard.hook("loss scale", note)

    def scale(original: Function) -> Function:
        def scale(self: Any, outputs: Any) -> Any:
            result = original(self, outputs)
            if recorder.active[0] and self.is_enabled():
                seen(outputs, result, self.get_scale())
            return result

        return scale

    def unscale(original: Function) -> Function:
        def unscale_(self: Any, optimizer: Optimizer) -> Any:
            recorder.window.unscaled = True
            return original(self, optimizer)

        return unscale_

    skipped = recorder.guard.hook("skipped step", recorder.skipped_step)

    def step(original: Function) -> Function:
        def step(self: Any, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
            tracked = recorder.tracked.get(optimizer)
            count = tracked.steps if tracked is not None else 0
            result = original(self, optimizer, *args, **kwargs)
            if recorder.active[0] and self.is_enabled() and tracked is not None and tracked.steps == count:
                skipped(optimizer)
            return result

        return step

    replace(scaler, "scale", scale)
    replace(scaler, "unscale_", unscale)
    replace(scaler, "step", step)
