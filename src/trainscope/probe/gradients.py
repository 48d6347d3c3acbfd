"""The gradients of one step: as backward left them, and as the optimizer will see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .moments import Moments, moments, norms
from .names import Watched

Mark = tuple[int, int]
"""Identity and version of a gradient tensor; either changes when anybody writes a new gradient."""


@dataclass(slots=True, eq=False)
class Raw:
    """Moments of some gradients, taken just before they were clipped."""

    places: list[int]
    moments: Moments
    marks: list[Mark]
    """As clipping left them: the moments hold while these do."""


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """All gradients of a step, on the device; each vector (len(places),)."""

    places: list[int]
    """Parameters that have a gradient."""
    moments: Moments
    """From before clipping."""
    clipped: Tensor | None
    """L2 norms as the optimizer will see them, where clipping was seen before the step was measured."""


class Gradients:
    """Follows the gradients of `watched` from one measured step to the next."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._raw: list[Raw] = []
        self._marks: dict[int, Mark] = {}

    def present(self) -> list[int]:
        """Return the places of the parameters that have a gradient now."""
        return [i for i, p in enumerate(self._watched.tensors) if p.grad is not None]

    def tensors(self, places: Sequence[int]) -> list[Tensor]:
        """Return the gradients at `places`."""
        return [g for i in places if (g := self._watched.tensors[i].grad) is not None]

    def clips_measured(self, parameters: Sequence[Tensor]) -> bool:
        """Tell whether these gradients are still the ones last measured (then clipping belongs to that step)."""
        places = self._places(parameters)
        return bool(places) and all(self._marks.get(i) == _mark(self._watched.tensors[i]) for i in places)

    def keep_raw(self, parameters: Sequence[Tensor]) -> None:
        """Measure gradients that are about to be clipped."""
        places = self._places(parameters)
        if places:
            self._raw.append(Raw(places, moments(self.tensors(places)), []))

    def mark_clipped(self) -> None:
        """Note what clipping left, after :meth:`keep_raw`."""
        if self._raw:
            last = self._raw[-1]
            last.marks = [_mark(self._watched.tensors[i]) for i in last.places]

    def clipped_norms(self, places: Sequence[int]) -> Tensor:
        """Return the L2 norms at `places` as they are now."""
        return norms(self.tensors(places))

    def measure(self) -> Measured | None:
        """Return the moments of every gradient, None if there is none."""
        present = self.present()
        raw = [r for r in self._raw if r.marks == [_mark(self._watched.tensors[i]) for i in r.places]]
        self._raw = []
        self._marks = {i: _mark(self._watched.tensors[i]) for i in present}
        known: set[int] = set()
        parts: list[tuple[list[int], Moments]] = []
        for one in reversed(raw):  # of two clippings of one gradient the later is nearer to what backward left
            if known.isdisjoint(one.places):
                parts.append((one.places, one.moments))
                known.update(one.places)
        rest = [i for i in present if i not in known]
        if rest:
            parts.append((rest, moments(self.tensors(rest))))
        if not parts:
            return None
        places = [i for part, _ in parts for i in part]
        if len(parts) == 1:
            joined = parts[0][1]
        else:
            joined = Moments(
                *(torch.cat([getattr(m, name) for _, m in parts]) for name in ("l2", "total", "low", "high"))
            )
        return Measured(places, joined, self.clipped_norms(places) if known else None)

    def _places(self, parameters: Sequence[Tensor]) -> list[int]:
        index = self._watched.index
        return [index[id(p)] for p in parameters if p.grad is not None and id(p) in index]


def _mark(parameter: Tensor) -> Mark:
    grad = parameter.grad
    return (id(grad), grad._version) if grad is not None else (0, 0)
