"""Autograd graphs: how many are still alive, and where the first value that is not finite came from."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

MAX_NODES = 20_000
"""Nodes of one graph that are visited."""
_KEY = "trainscope"


class Token:
    """Lives as long as any node of a graph."""

    __slots__ = ("__weakref__",)


class LiveGraphs:
    """Counts graphs of which some node is alive, by tokens in the nodes' own metadata."""

    def __init__(self) -> None:
        self._tokens: weakref.WeakSet[Token] = weakref.WeakSet()

    def __len__(self) -> int:
        return len(self._tokens)

    def mark(self, output: Tensor, token: Token | None = None, *, whole: bool) -> Token:
        """Put a token into the graph of `output`: into every node, or only the one that made it."""
        if token is None:
            token = Token()
            self._tokens.add(token)
        for node in nodes(output) if whole else [output.grad_fn]:
            if node is not None:
                kept: Any = node.metadata
                kept.setdefault(_KEY, token)
        return token


def nodes(root: Tensor) -> Iterator[Any]:
    """Yield the nodes behind `root`, breadth first, without the accumulators of leaves."""
    waiting, seen = [root.grad_fn], set()
    for node in waiting:
        if node is None or node in seen or type(node).__name__ == "AccumulateGrad":
            continue
        seen.add(node)
        if len(seen) > MAX_NODES:
            return
        yield node
        waiting += [following for following, _ in node.next_functions]


def first_nonfinite(root: Tensor) -> str | None:
    """Return the name of the earliest operation behind `root` that saved a value which is not finite.

    Earliest: the one nearest the inputs. Attention masks hold minus infinity on purpose, so plain minus infinity
    does not count where another value is NaN or plus infinity.
    """
    found = None
    for node in nodes(root):
        if any(_is_bad(value) for value in _saved(node)):
            found = type(node).__name__
    return found


def _saved(node: Any) -> Iterator[Tensor]:
    for name in dir(node):
        if name.startswith("_saved_") and name.removeprefix("_saved_") in ("result", "self", "other", "exponent"):
            try:
                value = getattr(node, name)
            except RuntimeError:  # freed already
                continue
            if isinstance(value, Tensor) and value.is_floating_point():
                yield value


def _is_bad(value: Tensor) -> bool:
    plain = value.detach()
    return bool((torch.isnan(plain) | torch.isposinf(plain)).any())
