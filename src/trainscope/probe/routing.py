"""How a mixture of experts spreads its tokens, and a memory its addresses.

A *router* is the outermost module whose name has the part ``router`` (``moe_router`` too), or a module named
``gate`` beside its ``experts``, as Hugging Face's MoE models have it. Its shares are the fraction of the
chosen (token, expert) pairs that go to each expert. An *addressor* is the outermost module whose name has
the part ``addressor``; its shares are the mean weight of each slot. Both add up to 1 and are over all
micro-batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .names import modules
from .outputs import unpacked


class Routing:
    """Hooks on the routers and addressors of one model, in place at every step.

    Parameters are those of :class:`~.activations.Activations`.
    """

    def __init__(
        self,
        model: nn.Module,
        counts: Callable[[], bool],
        guard: Callable[[Callable[..., None]], Callable[..., None]],
    ) -> None:
        self._model = model
        self._counts = counts
        self._guard = guard
        self._handles: list[Any] = []
        self._shares: dict[str, Tensor] = {}
        self.addressors: frozenset[str] = frozenset()
        """Names of the blocks that are addressors."""

    def arm(self) -> None:
        """Put the hooks in place."""
        found = blocks(self._model)
        self.addressors = frozenset(name for name, _, chosen in found if chosen is None)
        for name, module, chosen in found:
            self._handles.append(module.register_forward_hook(self._hook(name, chosen)))

    def disarm(self) -> None:
        """Take every hook away."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def collect(self) -> dict[str, Tensor]:
        """Return unnormalised shares of each block since the last call, on the device."""
        shares, self._shares = self._shares, {}
        return shares

    def _hook(self, name: str, chosen: int | None) -> Callable[..., None]:
        def hook(module: nn.Module, _args: object, output: object) -> None:
            if torch.compiler.is_compiling() or not self._counts():
                return
            with torch.no_grad():
                found = slot_weights(output) if chosen is None else expert_counts(module, output, chosen)
                if found is not None and not found.is_meta:
                    before = self._shares.get(name)
                    same = before is not None and before.shape == found.shape
                    self._shares[name] = before + found if before is not None and same else found

        return self._guard(hook)


def blocks(model: nn.Module) -> list[tuple[str, nn.Module, int | None]]:
    """List (name, module, experts chosen for a token); the last is None for an addressor."""
    found: list[tuple[str, nn.Module, int | None]] = []
    inside: set[int] = set()
    parents: dict[int, nn.Module] = {}
    for name, module in modules(model):
        parents.update((id(child), module) for child in module.children())
        if id(module) in inside or not name:
            continue
        last = name.rsplit(".", 1)[-1].lower()
        parent = parents.get(id(module))
        routes = _has_part(last, "router") or (last == "gate" and _has_experts(parent))
        if not routes and not _has_part(last, "addressor"):
            continue
        inside.update(id(inner) for inner in module.modules())
        found.append((name, module, _top_k(module, parent) if routes else None))
    return found


def _has_part(last: str, word: str) -> bool:
    return last == word or last.startswith(f"{word}_") or last.endswith(f"_{word}")


def _has_experts(parent: nn.Module | None) -> bool:
    return parent is not None and any(name.endswith("experts") for name, _ in parent.named_children())


def _top_k(module: nn.Module, parent: nn.Module | None) -> int:
    for holder in (module, parent):
        for name in ("top_k", "topk", "k", "num_experts_per_tok", "n_activated_experts"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return 1


def _parts(output: object) -> list[Tensor]:
    if isinstance(output, Tensor):
        return [output]
    output = unpacked(output)
    return [t for t in output if isinstance(t, Tensor)] if isinstance(output, (tuple, list)) else []


def expert_counts(module: nn.Module, output: object, chosen: int) -> Tensor | None:
    """Count the tokens of each expert, (experts,), from logits, probabilities or chosen indices."""
    parts = _parts(output)
    scores = [p for p in parts if p.is_floating_point() and p.dim() >= 2]
    indices = [p for p in parts if not p.is_floating_point() and p.dtype != torch.bool and p.dim() >= 1]
    experts = max((s.shape[-1] for s in scores), default=0)
    for name in ("num_experts", "n_experts", "n_routed_experts"):
        value = getattr(module, name, None)
        experts = value if isinstance(value, int) and value > experts else experts
    if experts < 2:
        return None
    if indices:
        picked = indices[0].reshape(-1)
    else:
        wide = next((s for s in scores if s.shape[-1] == experts), None)
        if wide is None:
            return None
        picked = wide.detach().topk(min(chosen, experts), dim=-1).indices.reshape(-1)
    # scatter_add and not bincount: that one would have to ask the device for the largest index.
    counts = torch.zeros(experts, dtype=torch.float32, device=picked.device)
    return counts.scatter_add_(0, picked.long(), torch.ones_like(picked, dtype=torch.float32))


def slot_weights(output: object) -> Tensor | None:
    """Add up the address weights of each slot, (slots,); logits are softmaxed, weights are not."""
    scores = next((p for p in _parts(output) if p.is_floating_point() and p.dim() >= 2 and p.shape[-1] > 1), None)
    if scores is None:
        return None
    rows = scores.detach().reshape(-1, scores.shape[-1]).float()
    sums = rows.sum(-1)
    weights = ((rows >= 0).all() & ((sums - 1).abs() < 1e-2).all()).unsqueeze(0)
    return torch.where(weights, rows, torch.softmax(rows, -1)).sum(0)
