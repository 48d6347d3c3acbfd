"""Which batches each data loader gave, so that those that never reached the model can be told."""

from __future__ import annotations

import weakref
from typing import Any

from . import hashing
from .forwards import tensors_in
from .samples import Samples

LISTED = 4_096
"""Samples of each loader that are listed, so that those of several ranks can be compared."""


class Loaders:
    """Every data loader that was read, with what decides its batches, and whether it gave any for training."""

    def __init__(self) -> None:
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._count = 0
        self._described: dict[int, str] = {}
        self._training: set[int] = set()
        self.samples = Samples()
        self._place: dict[int, int] = {}
        """Indices that the iterator of a loader has asked for."""
        self._ordered: dict[int, bool] = {}
        self._asked: dict[int, int] = {}
        self._different: dict[int, dict[int, int]] = {}
        """Indices that a loader asked for, and how many it had asked for before each."""

    def opened(self, loader: Any, description: str) -> int:
        """Return the number of a loader."""
        if loader not in self._numbers:
            self._numbers[loader] = self._count
            self._described[self._count] = description
            self._count += 1
        number = self._numbers[loader]
        self._place[number] = 0
        return number

    def given(self, number: int, batch: object) -> list[int]:
        """Return a loader's number and the hashes by which a batch of it can be known again in a forward pass."""
        self._training.add(number)
        return [number, *identity(batch)]

    def asked(self, number: int, index: object) -> None:
        """Follow the order in which a loader asks its data set."""
        for one in index if isinstance(index, (list, tuple)) else (index,):
            place = self._place.get(number, 0)
            self._ordered[number] = self._ordered.get(number, True) and one == place
            self._place[number] = place + 1
            if type(one) is int:
                asked = self._asked.get(number, 0)
                self._asked[number] = asked + 1
                self._different.setdefault(number, {}).setdefault(one, asked)

    def end(self) -> dict[str, Any]:
        """Describe what came to light."""
        return {
            "loaders": self.describe(),
            "samples": [self.samples.again, self.samples.changed],
            "indices": [[number, self._first(number)] for number in sorted(self._training)],
        }

    def describe(self) -> list[tuple[int, str, bool, bool | None, list[int]]]:
        """Return of each loader number, description, whether it gave batches where gradients are on, and its order.

        The order is whether it asked for 0, 1, 2, ...; None where there is none to see. Last come how many samples
        it asked for, how many different ones, and how many of those in the first half.
        """
        return [
            (number, text, number in self._training, self._ordered.get(number), self._counts(number))
            for number, text in self._described.items()
        ]

    def _first(self, number: int) -> list[int]:
        """Return the first samples that a loader asked for, until one of them came again."""
        first = self._different.get(number, {}).items()
        return [one for place, (one, at) in zip(range(LISTED), first, strict=False) if at == place]

    def _counts(self, number: int) -> list[int]:
        asked, first = self._asked.get(number, 0), self._different.get(number, {}).values()
        return [asked, len(first), sum(2 * at < asked for at in first)]


def identity(batch: object) -> list[int]:
    """Return the hash of each tensor as a model gets it, and as a classification loss gets labels."""
    found = []
    for tensor in tensors_in(batch):
        found.append(hashing.of_tensor(tensor))
        if not tensor.is_floating_point():
            found.append(hashing.of_tensor(tensor.detach().reshape(-1), limit=None))
    return found
