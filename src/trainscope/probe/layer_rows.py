"""Which layer has which row: parameters first, then modules without parameters of their own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .names import Watched, modules


class LayerRows:
    """The layers seen so far; grows when a module without parameters is seen.

    Attributes
    ----------
    names : tuple of str
        The same object while nothing new is seen.
    count : int
        How many of them are parameters.
    order : (count,) tensor
        Places of the watched parameters in the order of the model.
    """

    def __init__(self, watched: Watched, model: nn.Module) -> None:
        self.count = len(watched.names)
        self.order = torch.tensor(watched.order, dtype=torch.long, device="cpu")
        self.names = tuple(watched.names[i] for i in watched.order)
        places = {place: row for row, place in enumerate(watched.order)}
        self._row_of = {key: places[place] for key, place in watched.index.items()}
        self._modules = dict(modules(model))
        self._rows: dict[str, int] = {}
        self._taken: set[int] = set()
        self._masks: dict[tuple[Sequence[int] | None, int], Tensor] = {}

    def of_modules(self, names: Sequence[str]) -> list[int]:
        """Return the row of each module: that of its own weight, or one of its own."""
        return [self._row(name) for name in names]

    def of_parameters(self, places: Sequence[int]) -> Tensor | None:
        """Return a mask of the rows of the parameters at `places`, None if that is every row."""
        every = len(places) == self.count
        if every and len(self.names) == self.count:
            return None
        key = (None if every else tuple(places), len(self.names))
        mask = self._masks.get(key)
        if mask is None:
            chosen = torch.zeros(self.count, dtype=torch.bool, device="cpu")
            chosen[list(places)] = True
            mask = torch.zeros(len(self.names), dtype=torch.bool, device="cpu")
            mask[: self.count] = chosen[self.order]
            self._masks = {**(self._masks if len(self._masks) < 16 else {}), key: mask}
        return mask

    def widened(self, values: Tensor, fill: float) -> Tensor:
        """Return values of parameters, along the last dimension, with `fill` for the other layers."""
        missing = len(self.names) - self.count
        return torch.nn.functional.pad(values, (0, missing), value=fill) if missing else values

    def _row(self, name: str) -> int:
        known = self._rows.get(name)
        if known is not None:
            return known
        own = self._modules[name]._parameters if name in self._modules else {}
        place = next(
            (
                self._row_of[id(p)]
                for p in (own.get("weight"), *own.values())
                if p is not None and id(p) in self._row_of
            ),
            None,
        )
        if place is None or place in self._taken:  # a tied weight has its row already
            place = len(self.names)
            self.names = (*self.names, name)
        self._rows[name] = place
        self._taken.add(place)
        return place
