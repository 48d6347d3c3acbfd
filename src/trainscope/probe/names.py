"""Which tensors are watched, and what they are called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from .compiling import is_compiled
from .prepared import SMALL
from .tensors import is_measurable

_WRAPPERS = frozenset({"module", "_orig_mod", "_forward_module", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})


def clean(name: str, *, wrapped: bool = True) -> str:
    """Strip what wrappers (DDP, ``torch.compile``, FSDP1, activation checkpointing) put into a dotted name.

    ``module`` is a wrapper only in front; deeper it may be the user's own name.
    """
    parts = name.split(".")
    while wrapped and parts and parts[0] in _WRAPPERS:
        parts = parts[1:]
    return ".".join(part for part in parts if part not in _WRAPPERS or part == "module")


@dataclass(frozen=True, slots=True)
class Watched:
    """The parameters of a model and its optimizers, each once, large ones first."""

    names: tuple[str, ...]
    tensors: tuple[Tensor, ...]
    numel: tuple[int, ...]
    """Real numbers in the whole parameter, over all ranks; a complex one counts twice."""
    index: dict[int, int] = field(repr=False)
    """``id`` of a parameter to its place."""
    large: int
    """How many are large."""
    order: tuple[int, ...]
    """Places in the order of the model."""
    held: int
    """Entries in the parameter groups of the optimizers."""


def watch(model: nn.Module, optimizers: Sequence[torch.optim.Optimizer]) -> Watched:
    """List the parameters: of a tied weight the first name wins, what only an optimizer holds comes last."""
    wraps = is_wrapper(model)
    found: dict[int, tuple[str, Tensor]] = {}
    for name, parameter in model.named_parameters():
        found.setdefault(id(parameter), (clean(name, wrapped=wraps), parameter))
    for number, optimizer in enumerate(optimizers):
        for place, parameter in enumerate(p for group in optimizer.param_groups for p in group["params"]):
            found.setdefault(id(parameter), (f"optimizer{number}.param{place}", parameter))
    kept = [(name, p) for name, p in found.values() if is_measurable(p)]
    # By the size over all ranks, so that every rank has the same order.
    ranked = sorted(range(len(kept)), key=lambda i: kept[i][1].numel() <= SMALL)
    moved = {model: at for at, model in enumerate(ranked)}
    kept = [kept[i] for i in ranked]
    return Watched(
        tuple(name for name, _ in kept),
        tuple(p for _, p in kept),
        tuple(p.numel() * (2 if p.is_complex() else 1) for _, p in kept),
        {id(p): at for at, (_, p) in enumerate(kept)},
        sum(p.numel() > SMALL for _, p in kept),
        tuple(moved[i] for i in range(len(kept))),
        _held(optimizers),
    )


def has_changed(
    watched: Watched, model: nn.Module, optimizers: Sequence[torch.optim.Optimizer], *, thorough: bool
) -> bool:
    """Tell whether a list made now would be another one.

    Entries that joined or left a parameter group are noticed at once (a microsecond), parameters that took
    the place of others where `thorough` is set (a microsecond for each).
    """
    if _held(optimizers) != watched.held:
        return True
    if not thorough:
        return False
    now = {id(p): p for p in model.parameters()}
    now.update((id(p), p) for optimizer in optimizers for group in optimizer.param_groups for p in group["params"])
    return {key for key, p in now.items() if is_measurable(p)} != watched.index.keys()


def _held(optimizers: Sequence[torch.optim.Optimizer]) -> int:
    return sum([len(group["params"]) for optimizer in optimizers for group in optimizer.param_groups])


def is_wrapper(model: nn.Module) -> bool:
    """Tell whether `model` only wraps another module (DDP, FSDP1, DataParallel, ``torch.compile``)."""
    children = [name for name, _ in model.named_children()]
    return len(children) == 1 and children[0] in _WRAPPERS


def modules(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield (clean name, module) for every module outside compiled subtrees, each once.

    A hook in a compiled subtree would break its graph or recompile it, so nothing there is touched.
    """
    wraps = is_wrapper(model)
    hidden: set[int] = set()
    for name, module in model.named_modules():
        if id(module) in hidden:
            continue
        if is_compiled(module):
            hidden.update(id(inner) for inner in module.modules())
            continue
        yield clean(name, wrapped=wraps), module


def has_compiled(model: nn.Module) -> bool:
    """Tell whether any part of `model` runs as a compiled graph."""
    return any(is_compiled(module) for module in model.modules())
