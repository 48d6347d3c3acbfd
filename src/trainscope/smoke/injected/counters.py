"""Experts' own token counters: what a mixture of experts keeps in buffers, to hold against what its router chose."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from ...probe.names import modules
from ...probe.routing import blocks

_NAME = re.compile(r"(?:^|_)(?:tokens?_per_expert|expert_(?:token_)?counts?|expert_loads?)$")
_CHOSEN = ("top_k", "topk", "k", "num_experts_per_tok", "n_activated_experts")
_DROPS = ("capacity_factor", "expert_capacity", "capacity", "drop_tokens", "token_drop_policy")


class Counters:
    """The counters of one model's routers, where the number of experts for a token is declared."""

    def __init__(self) -> None:
        self._watched: list[tuple[str, nn.Module, str, bool]] = []
        """Router, module that has the buffer, the buffer's name, whether tokens may be dropped."""
        self._before: dict[str, float] = {}

    def watch(self, root: nn.Module) -> None:
        """Find the counters that stand at a router or beside it."""
        every = dict(modules(root))
        for name, module, chosen in blocks(root):
            parent = every.get(name.rpartition(".")[0], root)
            if chosen is None or not any(
                isinstance(getattr(m, k, None), int) for m in (module, parent) for k in _CHOSEN
            ):
                continue
            drops = any(getattr(m, key, None) for m in (module, parent) for key in _DROPS)
            for holder in (module, parent):
                for buffer in holder._buffers:
                    if _NAME.search(buffer):
                        self._watched.append((name, holder, buffer, drops))

    def read(self, chosen: Mapping[str, Any], evaluated: Mapping[str, Any]) -> list[list[float]] | None:
        """Compare counters with choices, just before an optimizer's step.

        Parameters
        ----------
        chosen, evaluated : mapping
            Router to the (token, expert) pairs of each expert, in training forwards and in others since the step
            before.

        Returns
        -------
        list or None
            For each counter: what it grew by or, where that is nearer to what was chosen, what it holds; pairs
            chosen in training; in other forwards; whether tokens may be dropped.
        """
        found = []
        for name, holder, buffer, drops in self._watched:
            value = holder._buffers.get(buffer)
            picked = sum(chosen.get(name, ()))
            if not isinstance(value, Tensor) or value.dim() != 1 or not picked:
                continue
            now = float(value.detach().double().sum())
            key = f"{name}.{buffer}"
            grown = now - self._before.get(key, 0.0)
            self._before[key] = now
            # A counter may be cleared after each step, or never.
            counted = min((grown, now), key=lambda n: abs(n - picked))
            found.append([counted, picked, float(sum(evaluated.get(name, ()))), float(drops)])
        return found or None
