"""Where the first loss that is not finite came from: the inputs, a module, or the arithmetic of the loss itself."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .forwards import Forward
from .graphs import Token, marked, nodes
from .models import Models

_SAVED = ("result", "self", "other", "exponent")


class Output:
    """What the outermost module gave last, without keeping it alive."""

    def __init__(self) -> None:
        self._tensor: weakref.ref[Tensor] | None = None

    def note(self, tensor: Tensor) -> None:
        """Remember a tensor."""
        self._tensor = weakref.ref(tensor)

    def describe(self) -> dict[str, Any] | None:
        """Return shape, smallest and largest value, and whether all are finite; None if it is gone."""
        tensor = None if self._tensor is None else self._tensor()
        if tensor is None or not tensor.numel() or not tensor.is_floating_point():
            return None
        values = tensor.detach()
        finite = bool(torch.isfinite(values).all())
        low, high = (float(v) for v in torch.aminmax(values)) if finite else (None, None)
        return {"shape": list(tensor.shape), "finite": finite, "low": low, "high": high}


def origin(
    root: Tensor, output: Output, token: Token | None, forwards: Sequence[Forward], models: Models
) -> dict[str, Any]:
    """Describe where a loss that is not finite came from.

    Parameters
    ----------
    root : Tensor
        The loss.
    token : Token or None
        Marks the operation that made `output`.

    Returns
    -------
    dict
        ``operation``: autograd name of the first one, from the inputs on, that had or must give a value that is
        not finite; ``module``: the module whose parameters are the nearest before it; ``place``: ``input``,
        ``model`` or ``loss``, None where that cannot be told; ``output``: what the model gave.
    """
    given = output.describe()
    end = None if token is None else next((node for node in nodes(root.grad_fn) if marked(node, token)), None)
    behind = set() if end is None else set(nodes(end))
    first = _first(root)
    if any(not _finite(part) for forward in forwards for part in forward.moments):
        place = "input"
    elif given is not None:
        place = "loss" if given["finite"] else "model"
    elif first is not None and behind:
        place = "model" if first in behind else "loss"
    else:
        place = None
    if place == "model" and first is not None and behind and first not in behind:
        first = None
    # Whatever has weights keeps what it was given: where nothing that was kept is bad, it came after the last of them.
    after = (first or end) if place == "model" else end or first
    return {
        "operation": None if first is None else type(first).__name__,
        "module": None if after is None else _module(after, models),
        "place": place,
        "output": given,
    }


def _first(root: Tensor) -> Any:
    """Return the earliest operation behind `root` with a value that is not finite: the one nearest the inputs.

    Attention masks hold minus infinity on purpose, so plain minus infinity does not count in what was saved.
    """
    found = None
    for node in nodes(root.grad_fn):
        if _singular(node) or any(_is_bad(value) for value in _saved(node)):
            found = node
    return found


def _singular(node: Any) -> bool:
    """Tell whether an operation must give infinity or NaN for what it was given: log(0), x / 0."""
    kind = type(node).__name__
    if kind in ("LogBackward0", "Log2Backward0", "Log10Backward0"):
        return any(bool((value <= 0).any()) for value in _saved(node, ("self",)))
    if kind == "DivBackward0":
        return any(bool((value == 0).any()) for value in _saved(node, ("other",)))
    return False


def _saved(node: Any, names: Sequence[str] = _SAVED) -> list[Tensor]:
    found = []
    for name in names:
        if getattr(getattr(node, f"_raw_saved_{name}", None), "unpack_hook", None) is not None:
            continue  # the script's own, which may give it out once only
        try:
            value = getattr(node, f"_saved_{name}", None)
        except RuntimeError:  # freed already
            continue
        if isinstance(value, Tensor) and value.numel():
            found.append(value.detach())
    return found


def _is_bad(value: Tensor) -> bool:
    return value.is_floating_point() and bool((torch.isnan(value) | torch.isposinf(value)).any())


def _module(node: Any, models: Models) -> str | None:
    """Return the module of the parameter that is nearest before an operation."""
    waiting, seen = [node], {node}
    for one in waiting:
        variable = getattr(one, "variable", None)
        name = models.name_of(variable) if isinstance(variable, Tensor) else None
        if name is not None:
            return name.rpartition(".")[0] or None
        fresh = [n for n, _ in one.next_functions if n is not None and n not in seen]
        seen.update(fresh)
        waiting += fresh
    return None


def _finite(moments: tuple[int, float, float]) -> bool:
    return all(abs(value) < float("inf") for value in moments[1:])
