"""Follows the model's own forwards: which are training, and how the generators stood before."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import torch
from torch import nn

from . import compiling, random_state
from .activations import Activations
from .attention import Attention
from .batches import Batches
from .boundary import Boundary
from .names import has_compiled, modules
from .routing import Routing


class Forwards:
    """Hooks on the outermost module, and what samples inside it."""

    def __init__(self, model: nn.Module, chosen: tuple[str, ...] | None, boundary: Boundary) -> None:
        self._model, self._boundary = model, boundary
        self.activations = Activations(model, chosen, self.counts, boundary.guard("activations"))
        self.routing = Routing(model, self.counts, boundary.guard("routing"))
        self.batches = Batches()
        self.attention: Attention | None = None
        self.has_compiled = False
        """Whether part of the model runs compiled; nothing inside can be seen."""
        self._handles: list[Any] = []
        self._compile_listener = partial(boundary.call, "compile", self._on_compile)
        self._depth = 0
        self._with_grad = False
        self._seen = 0
        self._random: dict[str, Any] = {}
        self.weight: torch.Tensor | None = None
        """One that learns; its version tells whether it was written to between a step's forward and its measuring."""
        self.version = 0
        """That of `weight` at the first training forward of a step."""

    def attach(self) -> None:
        """Put the hooks in place."""
        compiling.listen(self._compile_listener)
        self._boundary.call("forward", self._hook_root)
        self.look_again()
        self._random = random_state.take()

    def look_again(self) -> None:
        """List the modules anew: some have come or gone."""
        self.has_compiled = has_compiled(self._model)
        names = {id(module): name or None for name, module in modules(self._model)}
        self.attention = Attention(names, self._boundary.guard("attention"))
        self.routing.disarm()
        self.routing.arm()
        self.activations.look_again()

    def detach(self) -> None:
        """Take every hook away."""
        compiling.leave(self._compile_listener)
        self.activations.disarm()
        self.routing.disarm()
        self._drop_root()
        self._leave()

    def _hook_root(self) -> None:
        if isinstance(self._model, torch.jit.ScriptModule):
            return  # TorchScript runs no Python hooks
        guard = self._boundary.guard("forward")
        self._handles = [
            self._model.register_forward_pre_hook(guard(self._before), with_kwargs=True),
            self._model.register_forward_hook(guard(self._after), always_call=True),
        ]

    def _drop_root(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _on_compile(self) -> None:
        """Take the hooks out of what is being compiled, and put back the others."""
        self.has_compiled = has_compiled(self._model)
        if not self.has_compiled:
            return  # another model
        self.activations.disarm()
        self.routing.disarm()
        self.routing.arm()
        if compiling.is_compiled(self._model) and "_orig_mod" not in self._model._modules:
            self._drop_root()

    def counts(self) -> bool:
        """Tell whether the forward going on belongs to training."""
        if not self._model.training or torch.is_inference_mode_enabled() or _in_backward() or _is_transformed():
            return False
        # Reentrant checkpointing runs its first forward without gradients, inside one that has them.
        return torch.is_grad_enabled() or (self._depth > 0 and self._with_grad)

    def random_state(self) -> dict[str, Any]:
        """Return the state of the generators before this step's first training forward.

        Where that forward cannot be seen (the model was compiled after attaching, or is not called itself),
        the state at the end of the step before.
        """
        return self._random

    def next(self) -> int | None:
        """Begin a new step; return the training forwards of the last one, None if none was seen."""
        if self._depth:  # Ctrl-C ended a forward, for which no hook is called
            self._depth = 0
            self._leave()
        if not self._seen:
            self._random = random_state.take()
        seen, self._seen = self._seen, 0
        return seen or None

    def _before(self, _module: nn.Module, args: object, kwargs: object) -> None:
        if torch.compiler.is_compiling():
            return
        if self._depth == 0:
            self._with_grad = torch.is_grad_enabled()
        self._depth += 1
        if self._depth > 1 or not self.counts():
            return
        if not self._seen:
            self._random = random_state.take()
            self.version = 0 if self.weight is None else self.weight._version
        self._seen += 1
        self._boundary.call("batch", self.batches.see, [args, kwargs])
        if self.activations.armed and self.attention is not None and not self._compiles():
            self.attention.enter()

    def _after(self, _module: nn.Module, _args: object, _output: object) -> None:
        if torch.compiler.is_compiling():
            return
        self._depth = max(0, self._depth - 1)
        if self._depth == 0:
            self._leave()

    def _leave(self) -> None:
        if self.attention is not None:
            self.attention.leave()

    def _compiles(self) -> bool:
        # Compiled code guards on what these functions are: it would compile again.
        utils = sys.modules.get("torch._dynamo.utils")
        return self.has_compiled or (utils is not None and utils.counters["frames"]["ok"] > 0)


def _in_backward() -> bool:
    return torch._C._current_graph_task_id() != -1


def _is_transformed() -> bool:
    """Tell whether ``torch.jit.trace`` or a functorch transform is at work: its tensors must not be kept."""
    return torch._C._get_tracing_state() is not None or torch._C._functorch.peek_interpreter_stack() is not None
