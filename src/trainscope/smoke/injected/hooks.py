"""Where the recorder listens to optimizers and schedulers; gradients are in :mod:`.gradient_hooks`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer, lr_scheduler
from torch.optim import optimizer as optimizers

from .gradient_hooks import versions
from .guard import opaque
from .hashing import is_unreal
from .norms import gradient_norms, total
from .patches import replace
from .recorder import Recorder
from .sight import see_models

Function = Callable[..., Any]


def install(recorder: Recorder) -> None:
    """Install them all."""
    for hook in (_construction, _steps, _zero_grad, _schedulers):
        hook(recorder)


def _construction(recorder: Recorder) -> None:
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

    def pre(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        depth[0] += 1
        if depth[0] > 1 or not recorder.wakes() or any(map(is_unreal, optimizer.param_groups[0]["params"])):
            return None
        tracked = current[0] = before(optimizer)
        if tracked is None:
            return None
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if not callable(closure):
            gradients(optimizer, tracked)
            return None

        @functools.wraps(closure)
        def watched(*a: Any, **k: Any) -> Any:
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


def _zero_grad(recorder: Recorder) -> None:
    def note(parameters: Callable[[], Sequence[Tensor]]) -> None:
        """Count a call, and whether it loses gradients that no step has used."""
        window = recorder.window
        window.zero_grads += 1
        # Weights moved by hand since the backward (sharpness-aware steps) have used its gradients.
        if window.versions != versions(recorder.tracked):
            return
        if window.backward_calls and not any(t.in_closure for t in recorder.tracked.values()):
            window.thrown += total(gradient_norms(parameters())) > 0

    before = recorder.guard.hook("zero_grad", note)

    def of(holder: Any) -> Sequence[Tensor]:
        if isinstance(holder, Optimizer):
            return [p for group in holder.param_groups for p in group["params"]]
        return list(holder.parameters())

    def make(original: Function) -> Function:
        def zero_grad(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not torch.compiler.is_compiling() and recorder.active[0]:
                before(lambda: of(self))
            return original(self, *args, **kwargs)

        return zero_grad

    replace(Optimizer, "zero_grad", make)
    replace(torch.nn.Module, "zero_grad", make)


def _schedulers(recorder: Recorder) -> None:
    depth = [0]

    def note(scheduler: Any) -> None:
        recorder.window.scheduler_steps += 1
        recorder.schedulers.stepped(scheduler, recorder.sink)

    seen = recorder.guard.hook("scheduler", note)
    made = recorder.guard.hook("scheduler construction", recorder.schedulers.made)

    def step(original: Function) -> Function:
        def step(self: Any, *args: Any, **kwargs: Any) -> Any:
            if depth[0] == 0 and recorder.active[0]:
                seen(self)
            depth[0] += 1
            try:
                return original(self, *args, **kwargs)
            finally:
                depth[0] -= 1

        return step

    def construct(original: Function) -> Function:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            depth[0] += 1  # a scheduler steps itself when it is made
            try:
                original(self, *args, **kwargs)
            finally:
                depth[0] -= 1
            if depth[0] == 0 and recorder.active[0]:
                made(self)

        return __init__

    base = lr_scheduler.LRScheduler
    kinds = [k for k in vars(lr_scheduler).values() if isinstance(k, type) and issubclass(k, base)]
    for kind in dict.fromkeys(kinds):
        if "step" in vars(kind):
            replace(kind, "step", step)
        if "__init__" in vars(kind):
            replace(kind, "__init__", construct)
