"""Sees forwards: the pass through the outermost module, dropout and batch norm, the loss, routers.

Classes and functions are wrapped, not modules hooked: models can be copied and pickled, and traces see the original.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  # the field's name for it
from torch import Tensor, nn

from ...probe.names import modules
from ...probe.routing import blocks
from .batches import of_inputs
from .forwards import Forward, RouterHook, UsedHook, moments_of, tensors_in
from .guard import is_traced
from .labels import labels_of
from .patches import replace
from .recorder import Recorder

Function = Callable[..., Any]
_wrapped: set[type] = set()
_LOSSES = (
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "kl_div", "gaussian_nll_loss", "poisson_nll_loss", "ctc_loss", "triplet_margin_loss", "cosine_embedding_loss",
)  # fmt: skip


def see_models(recorder: Recorder, parameters: Sequence[Tensor]) -> None:
    """Find the models of `parameters` and listen to those that are new."""

    def add(name: str, counts: Tensor) -> None:
        if not recorder.inside_backward:  # the second run of activation checkpointing chooses again
            recorder.forwards.add_shares(name, counts)

    shares = recorder.guard.hook("routing", add)
    counters = recorder.guard.hook("expert counters", recorder.counters.watch)
    for root in recorder.models.discover(parameters):
        _wrap_forward(recorder, type(root))
        for name, module, chosen in blocks(root):
            if chosen is not None:
                module.register_forward_hook(RouterHook(name, chosen, shares))
        counters(root)
        _watch_frozen(recorder, root)


def _wrap_forward(recorder: Recorder, kind: type[nn.Module]) -> None:
    if kind in _wrapped:
        return
    _wrapped.add(kind)
    enter = recorder.guard.hook("forward", lambda module, args, kwargs: _enter(recorder, module, args, kwargs))
    watches = recorder.guard.hook("models", recorder.is_watched, timed=False)
    leave = recorder.guard.hook("forward output", lambda forward, output: _leave(recorder, forward, output))

    def make(original: Function) -> Function:
        def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if is_traced() or recorder.inside_backward or not watches(self):
                return original(self, *args, **kwargs)
            seen = enter(self, args, kwargs)
            try:
                output = original(self, *args, **kwargs)
            finally:
                recorder.forwards.leave()
                recorder.attending.leave()
            leave(seen, output)
            return output

        return forward

    replace(kind, "forward", make)


def _enter(recorder: Recorder, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Forward:
    recorder.attending.enter(recorder.done, training=module.training)
    inputs = list(tensors_in(*args, *kwargs.values()))
    place = recorder.models.place_of(module)
    forward = recorder.forwards.enter(training=module.training, inputs=inputs, root=place)
    recorder.setting.note_precision(inputs)
    if forward.gradient:
        recorder.setting.draws.begin(anew=False)
    if forward.gradient and not recorder.batches.seen:
        forward.described = of_inputs([args, kwargs])
        recorder.omission.enter(module, recorder.forwards.waiting() - 1)
    return forward


def _leave(recorder: Recorder, forward: Forward | None, output: Any) -> None:
    if forward is None:
        return
    if not forward.gradient:
        forward.output = next((found for t in tensors_in(output) if (found := moments_of(t)) is not None), None)
        return
    for tensor in tensors_in(output):
        if tensor.grad_fn is not None:
            recorder.output.note(tensor)
            recorder.token = recorder.graphs.mark(tensor, whole=False)
            return


def _watch_frozen(recorder: Recorder, root: nn.Module) -> None:
    """Note which modules with parameters that are not trained run; until the first step only."""
    for name, module in modules(root):
        # That a container ran does not say that it used a parameter of its own.
        if next(module.children(), None) is None and any(
            p is not None and not p.requires_grad for p in module._parameters.values()
        ):
            hook = UsedHook(recorder.models.module_name(module) or name, recorder.setting.used)
            recorder.setting.temporary.append(module.register_forward_pre_hook(hook))


def install(recorder: Recorder) -> None:
    """Listen to the functions that modes and labels go through."""
    _modes(recorder)
    _losses(recorder)
    _other_losses(recorder)


def _modes(recorder: Recorder) -> None:
    def note(training: bool, rate: float) -> None:
        if training and rate > 0 and torch.is_grad_enabled():
            recorder.setting.dropped.add(float(rate))
        # Frames: this function, the guard, the wrapper, and the forward that called it.
        module = sys._getframe(3).f_locals.get("self")
        forward = recorder.forwards.current()
        if training:
            forward.train_modules.add(id(module))
        if training or not forward.gradient:
            return
        name = recorder.models.module_name(module)
        if name is None and isinstance(module, torch.nn.Module):
            return  # in a network that is not trained and that gradients only pass through, as in a perceptual loss
        forward.eval_modules[id(module)] = type(module).__name__ if name is None else name

    seen = recorder.guard.hook("modes", note, timed=False)

    _dropouts(recorder, seen)
    _batch_norm(recorder, seen)


def _dropouts(recorder: Recorder, seen: Function) -> None:
    draws = recorder.setting.draws

    def note(name: str, given: Any, rate: float) -> None:
        place = recorder.models.order_of(sys._getframe(3).f_locals.get("self"))
        draws.enter(f"{name} {place} {tuple(given.shape)} {given.stride()} {rate}")

    draw = recorder.guard.hook("masks", note)
    drawn = recorder.guard.hook("masks", draws.leave)

    def make(original: Function) -> Function:
        def function(*args: Any, **kwargs: Any) -> Any:
            if is_traced() or not recorder.active[0] or recorder.inside_backward:
                return original(*args, **kwargs)
            rate = args[1] if len(args) > 1 else kwargs.get("p", 0.5)
            if rate > 0:
                seen(bool(args[2] if len(args) > 2 else kwargs.get("training", True)), rate)
            if not draws.is_open:
                return original(*args, **kwargs)
            draw(original.__name__, args[0] if args else kwargs.get("input"), rate)
            result = original(*args, **kwargs)
            drawn()
            return result

        return function

    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"):
        replace(F, name, make)


def _batch_norm(recorder: Recorder, seen: Function) -> None:
    def make(original: Function) -> Function:
        def function(*args: Any, **kwargs: Any) -> Any:
            if not is_traced() and recorder.active[0] and not recorder.inside_backward:
                seen(bool(args[5] if len(args) > 5 else kwargs.get("training", False)), 0.0)
            return original(*args, **kwargs)

        return function

    replace(F, "batch_norm", make)


def _losses(recorder: Recorder) -> None:
    def note(bound: inspect.BoundArguments, loss: Any) -> None:
        bound.apply_defaults()
        given = bound.arguments
        found = labels_of(
            given["input"],
            given["target"],
            loss,
            ignore=given["ignore_index"],
            reduction=given["reduction"],
            smoothing=float(given.get("label_smoothing", 0.0)),
        )
        if found is not None:
            recorder.forwards.current().labels.append(found)

    seen = recorder.guard.hook("labels", note)

    def make(original: Function) -> Function:
        signature = inspect.signature(original)

        def function(*args: Any, **kwargs: Any) -> Any:
            loss = original(*args, **kwargs)
            if not is_traced() and recorder.active[0] and not recorder.inside_backward:
                seen(signature.bind(*args, **kwargs), loss)
            return loss

        return function

    replace(F, "cross_entropy", make)
    replace(F, "nll_loss", make)


def _other_losses(recorder: Recorder) -> None:
    """Note the value of every other loss in forwards without gradient: an evaluation that has no class labels."""

    def note(loss: Any, target: Any) -> None:
        # One value for each element waits for a mask: its plain mean would count padding too.
        if isinstance(loss, Tensor) and loss.is_floating_point() and loss.dim() == 0:
            count = target.numel() if isinstance(target, Tensor) else 1
            recorder.forwards.current().losses.append((count, float(loss.detach())))

    seen = recorder.guard.hook("losses", note)

    def make(original: Function) -> Function:
        def function(*args: Any, **kwargs: Any) -> Any:
            loss = original(*args, **kwargs)
            if not is_traced() and recorder.active[0] and not torch.is_grad_enabled():
                seen(loss, args[1] if len(args) > 1 else kwargs.get("target"))
            return loss

        return function

    for name in _LOSSES:
        replace(F, name, make)
