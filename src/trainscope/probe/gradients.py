"""The gradients of one step: as backward left them, and as the optimizer will see them."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from .moments import Moments, reduce
from .names import Watched
from .prepared import Prepared, prepare

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
class Now:
    """The gradients of a step, some of them measured already."""

    raw: list[Raw]
    """From before clipping, and valid."""
    places: list[int]
    """Of the rest."""
    rest: Prepared
    clipped: list[int]
    """Places whose gradients were clipped before the step was measured."""
    tensors: list[Tensor | None]
    """Gradient of every parameter."""


class Gradients:
    """Follows the gradients of `watched` from one measured step to the next."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._large = watched.large
        self._raw: list[Raw] = []
        # Two lists of whole numbers and no list of pairs: thousands of new objects a step wake the garbage collector.
        self._identities: list[int] = []
        self._versions: list[int] = []

    def present(self) -> list[int]:
        """Return the places of the parameters that have a gradient now."""
        return [i for i, p in enumerate(self._watched.tensors) if p.grad is not None]

    def tensors(self, places: Sequence[int]) -> list[Tensor]:
        """Return the gradients at `places`."""
        return [g for i in places if (g := self._watched.tensors[i].grad) is not None]

    def clips_measured(self, parameters: Sequence[Tensor]) -> bool:
        """Tell whether these are still the gradients last measured: then clipping belongs to that step."""
        places = self._places(parameters)
        if not places or not self._identities:
            return False
        return all((self._identities[i], self._versions[i]) == _mark(self._watched.tensors[i]) for i in places)

    def keep_raw(self, parameters: Sequence[Tensor]) -> None:
        """Measure gradients that are about to be clipped."""
        places = self._places(parameters)
        if places:
            self._raw.append(Raw(places, reduce([self.prepare(places, whole=True)])[0][0], []))

    def prepare(self, places: Sequence[int], *, whole: bool = False) -> Prepared:
        """Make the gradients at `places` (in order) ready for reducing; `whole` where moments are wanted."""
        return prepare(self.tensors(places), bisect.bisect_left(places, self._large), whole=whole)

    def mark_clipped(self) -> None:
        """Note what clipping left, after :meth:`keep_raw`."""
        if self._raw:
            last = self._raw[-1]
            last.marks = [_mark(self._watched.tensors[i]) for i in last.places]

    def now(self) -> Now:
        """Return the gradients to be measured, and those that were when they were clipped."""
        grads = [p.grad for p in self._watched.tensors]
        present = [i for i, g in enumerate(grads) if g is not None]
        raw = [r for r in self._raw if r.marks == [_mark(self._watched.tensors[i]) for i in r.places]]
        self._raw = []
        self._identities = [0 if g is None else id(g) for g in grads]
        self._versions = [0 if g is None else g._version for g in grads]
        known: set[int] = set()
        kept = []
        for one in reversed(raw):  # of two clippings of one gradient, the later still holds
            if known.isdisjoint(one.places):
                kept.append(one)
                known.update(one.places)
        rest = [i for i in present if i not in known] if known else present
        chosen = [g for i in rest if (g := grads[i]) is not None]
        ready = prepare(chosen, bisect.bisect_left(rest, self._large), whole=True)
        return Now(kept, rest, ready, sorted(known), grads)

    def _places(self, parameters: Sequence[Tensor]) -> list[int]:
        index = self._watched.index
        return sorted({index[id(p)] for p in parameters if p.grad is not None and id(p) in index})


def _mark(parameter: Tensor) -> Mark:
    grad = parameter.grad
    return (id(grad), grad._version) if grad is not None else (0, 0)
