"""Where the recorder listens: optimizers, backward, clipping, zero_grad, schedulers, GradScaler."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer, lr_scheduler
from torch.optim import optimizer as optimizers

from .guard import opaque
from .patches import replace
from .recorder import Recorder

_RAW = "_trainscope_raw"
Function = Callable[..., Any]


def install(recorder: Recorder) -> None:
    """Install them all."""
    for hook in (_construction, _steps, _backward, _clipping, _zero_grad, _schedulers, _scaler):
        hook(recorder)


def _construction(recorder: Recorder) -> None:
    from .sight import see_models

    def constructed(optimizer: Optimizer) -> None:
        recorder.track(optimizer)
        see_models(recorder, [p for group in optimizer.param_groups for p in group["params"]])

    seen = recorder.guard.hook("optimizer construction", constructed)

    def make(original: Function) -> Function:
        def __init__(self: Optimizer, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            original(self, *args, **kwargs)
            if recorder.active[0]:
                seen(self)

        return __init__

    replace(Optimizer, "__init__", make)


def _steps(recorder: Recorder) -> None:
    # A subclass whose step calls its parent's fires the hooks twice; so do optimizers that wrap others.
    depth = [0]
    before = recorder.guard.hook("before step", recorder.before_step)
    gradients = recorder.guard.hook("gradients", recorder.gradients)
    after = recorder.guard.hook("after step", recorder.after_step)
    current: list[Any] = [None]

    def pre(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        depth[0] += 1
        if depth[0] > 1 or not recorder.wakes():
            return None
        tracked = current[0] = before(optimizer)
        if tracked is None:
            return None
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if not callable(closure):
            gradients(optimizer, tracked)
            return None

        @functools.wraps(closure)
        def watched(*a: Any, **k: Any) -> Any:  # noqa: ANN401
            held, depth[0] = depth[0], 0
            tracked.in_closure = True
            try:
                result = closure(*a, **k)
            finally:
                tracked.in_closure = False
                depth[0] = held
            gradients(optimizer, tracked)
            return result

        if "closure" in kwargs:
            return args, {**kwargs, "closure": watched}
        return (args[0], watched, *args[2:]), kwargs

    def post(optimizer: Optimizer, _args: tuple[Any, ...], _kwargs: dict[str, Any]) -> None:
        depth[0] = max(0, depth[0] - 1)
        if depth[0] == 0 and recorder.active[0] and current[0] is not None:
            tracked, current[0] = current[0], None
            after(optimizer, tracked)

    optimizers.register_optimizer_step_pre_hook(opaque(pre))
    optimizers.register_optimizer_step_post_hook(opaque(post))


def _backward(recorder: Recorder) -> None:
    def note(tensors: Any) -> None:  # noqa: ANN401
        first = tensors[0] if isinstance(tensors, Sequence) and len(tensors) else tensors
        if not isinstance(first, Tensor):
            recorder.before_backward(None, None, None)
            return
        raw, divisor = getattr(first, _RAW, (None, divisor_of(first)))
        recorder.before_backward(first, raw, divisor)

    seen = recorder.guard.hook("backward", note)

    def make(original: Function) -> Function:
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
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


def divisor_of(loss: Tensor) -> float | None:
    """Return the number that a loss was divided by last (or 1 / the factor), None if it was not."""
    node = loss.grad_fn
    kind = type(node).__name__
    if kind not in ("DivBackward0", "MulBackward0"):
        return None
    other = getattr(node, "_saved_other", None)
    value = float(other) if isinstance(other, Tensor) and other.numel() == 1 else 0.0
    if kind == "MulBackward0" and value:
        value = round(1 / value, 9)
    return value


def _clipping(recorder: Recorder) -> None:
    from torch.nn.utils import clip_grad

    from .window import Clip

    before = recorder.guard.hook("clipping", recorder.before_clip)

    def note(result: Any, limit: Any, scaled: bool) -> None:  # noqa: ANN401, FBT001
        norm = float(_whole(result)) if isinstance(result, Tensor) else float("nan")
        bound = None if limit is None else float(limit)
        recorder.window.clips.append(Clip(bound, norm, recorder.window.backward_calls, scaled))

    after = recorder.guard.hook("clipping result", note)

    def make(original: Function, *, by_norm: bool) -> Function:
        def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
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


def _zero_grad(recorder: Recorder) -> None:
    before = recorder.guard.hook("zero_grad", recorder.before_zero_grad)

    def of(holder: Any) -> Sequence[Tensor]:  # noqa: ANN401
        if isinstance(holder, Optimizer):
            return [p for group in holder.param_groups for p in group["params"]]
        return list(holder.parameters())

    def make(original: Function) -> Function:
        def zero_grad(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if not torch.compiler.is_compiling() and recorder.active[0]:
                before(lambda: of(self))
            return original(self, *args, **kwargs)

        return zero_grad

    replace(Optimizer, "zero_grad", make)
    replace(torch.nn.Module, "zero_grad", make)


def _schedulers(recorder: Recorder) -> None:
    depth = [0]

    def note(scheduler: Any) -> None:  # noqa: ANN401
        from .schedules import describe

        recorder.window.scheduler_steps += 1
        if scheduler not in recorder.schedulers:
            recorder.schedulers[scheduler] = len(recorder.schedulers)
            recorder.sink.write("scheduler", number=recorder.schedulers[scheduler], **describe(scheduler))

    seen = recorder.guard.hook("scheduler", note)

    def step(original: Function) -> Function:
        def step(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if depth[0] == 0 and recorder.active[0]:
                seen(self)
            depth[0] += 1
            try:
                return original(self, *args, **kwargs)
            finally:
                depth[0] -= 1

        return step

    def construct(original: Function) -> Function:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401, N807
            depth[0] += 1  # a scheduler steps itself when it is made
            try:
                original(self, *args, **kwargs)
            finally:
                depth[0] -= 1

        return __init__

    base = lr_scheduler.LRScheduler
    kinds = [k for k in vars(lr_scheduler).values() if isinstance(k, type) and issubclass(k, base)]
    for kind in dict.fromkeys(kinds):
        if "step" in vars(kind):
            replace(kind, "step", step)
        if "__init__" in vars(kind):
            replace(kind, "__init__", construct)


def _scaler(recorder: Recorder) -> None:
    scaler = torch.amp.GradScaler

    def note(loss: Any, result: Any, scale: float) -> None:  # noqa: ANN401
        recorder.window.scale = scale
        if isinstance(loss, Tensor) and isinstance(result, Tensor):
            setattr(result, _RAW, (loss.detach(), divisor_of(loss)))

    seen = recorder.guard.hook("loss scale", note)

    def scale(original: Function) -> Function:
        def scale(self: Any, outputs: Any) -> Any:  # noqa: ANN401
            result = original(self, outputs)
            if recorder.active[0] and self.is_enabled():
                seen(outputs, result, self.get_scale())
            return result

        return scale

    def unscale(original: Function) -> Function:
        def unscale_(self: Any, optimizer: Optimizer) -> Any:  # noqa: ANN401
            recorder.window.unscaled = True
            return original(self, optimizer)

        return unscale_

    skipped = recorder.guard.hook("skipped step", recorder.skipped_step)

    def step(original: Function) -> Function:
        def step(self: Any, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
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
