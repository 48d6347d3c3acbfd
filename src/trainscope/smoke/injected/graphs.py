"""Autograd graphs: how many are still alive."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

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
        for node in nodes(output.grad_fn) if whole else [output.grad_fn]:
            if node is not None:
                kept: Any = node.metadata
                kept.setdefault(_KEY, token)
        return token


def marked(node: Any, token: Token) -> bool:
    """Tell whether an operation has this token."""
    return node.metadata.get(_KEY) is token


def nodes(last: Any) -> Iterator[Any]:
    """Yield the nodes from `last` to the inputs, breadth first, without the accumulators of leaves."""
    waiting, seen = [last], set()
    for node in waiting:
        if node is None or node in seen or type(node).__name__ == "AccumulateGrad":
            continue
        seen.add(node)
        if len(seen) > MAX_NODES:
            return
        yield node
        waiting += [following for following, _ in node.next_functions]
