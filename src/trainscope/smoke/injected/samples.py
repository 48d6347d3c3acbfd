"""Whether a sample looks the same each time it comes: then nothing augments it."""

from __future__ import annotations

from . import hashing
from .forwards import tensors_in

WATCHED = 64
"""Samples of each loader that are followed, the first that it asks for."""


class Samples:
    """The first samples of every training loader, and how they looked."""

    def __init__(self) -> None:
        self._looks: dict[tuple[int, int], dict[str, int]] = {}
        """Loader and index to what it looked like in each shape: padding is no augmentation."""
        self._watched: dict[int, int] = {}
        self.again = 0
        """Times that a followed sample came again."""
        self.changed = 0
        """Times that it then looked otherwise."""

    def see(self, loader: int, index: object, batch: object) -> None:
        """Look at the samples of a batch.

        Parameters
        ----------
        loader : int
        index : object
            What the sampler asked for: a list of whole numbers, or nothing is seen.
        batch : object
            Collated: the first dimension of its tensors is the samples'.
        """
        if not isinstance(index, list) or not all(type(one) is int for one in index):
            return
        tensors = [t for t in tensors_in(batch) if t.dim() and t.shape[0] == len(index)]
        if not tensors:
            return
        for place, one in enumerate(index):
            key = (loader, one)
            if key not in self._looks and self._watched.get(loader, 0) >= WATCHED:
                continue
            if key not in self._looks:
                self._looks[key] = {}
                self._watched[loader] = self._watched.get(loader, 0) + 1
            parts = [tensor[place] for tensor in tensors]
            shape, look = str([tuple(part.shape) for part in parts]), hashing.together(map(hashing.of_tensor, parts))
            before = self._looks[key].get(shape)
            if before is not None:
                self.again += 1
                self.changed += look != before
            self._looks[key][shape] = look
