"""How many different samples training saw, by what they hold: a loop that reads a part of its data shows it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

COLUMNS = 256
"""Numbers of a sample that its key is made of, spread evenly."""
MOST = 1_000_000
"""Different samples of one model that are counted; no smoke run sees more."""


class Distinct:
    """The samples that each outermost module was trained on."""

    def __init__(self) -> None:
        self._keys: dict[int, set[int]] = {}
        self._seen: dict[int, int] = {}
        self._evaluated: set[int] = set()

    def see(self, root: int, keys: Sequence[int]) -> None:
        """Count the samples of one training forward of a module."""
        known = self._keys.setdefault(root, set())
        self._seen[root] = self._seen.get(root, 0) + len(keys)
        if len(known) < MOST:
            known.update(keys)

    def evaluate(self, keys: Sequence[int]) -> None:
        """Note the samples of a forward that did not train."""
        if len(self._evaluated) < MOST:
            self._evaluated.update(keys)

    def evaluated(self) -> list[int]:
        """Return how many different samples were evaluated, and how many of them trained on as well."""
        return [len(self._evaluated), len(self._evaluated & set().union(*self._keys.values()))]

    def counts(self) -> list[list[int]]:
        """Return of each module, in the order of their numbers, samples seen and how many were different."""
        return [[self._seen[root], len(self._keys[root])] for root in sorted(self._keys)]


def keys_of(tensors: Sequence[Tensor]) -> list[int]:
    """Return a number for each sample of a batch: equal samples, equal numbers.

    Parameters
    ----------
    tensors : sequence of Tensor
        The model's inputs, samples in their first dimension. The largest is taken for the sample; where it is the
        same for several samples, as positions and masks are, the one that tells most of them apart.

    Notes
    -----
    A sample of whole numbers is known again however far its batch was padded at its end.
    """
    fit = [t for t in tensors if t.dim() and t.numel() and t.layout == torch.strided and not t.is_complex()]
    fit = sorted((t for t in fit if t.dtype is not torch.bool and not t.is_meta), key=torch.Tensor.numel, reverse=True)
    best: list[int] = []
    for tensor in (t for t in fit if t.dim() == fit[0].dim() and t.shape[0] == fit[0].shape[0]):
        keys = _keys(tensor)
        if len(set(keys)) > len(set(best)):
            best = keys
        if len(set(best)) == len(best):
            break
    return best


def _keys(tensor: Tensor) -> list[int]:
    """Return the key of each row."""
    with torch.no_grad():
        flat = tensor.detach().reshape(tensor.shape[0], -1)
        spread = flat[:, :: max(1, flat.shape[1] // COLUMNS)]
        if flat.is_floating_point():
            whole = spread.float().contiguous().view(torch.int32).long()
        else:
            tokens = tensor.dim() == 2
            whole = flat[:, :COLUMNS].long() - flat[:, -1:].long() if tokens else spread.long()
        # Odd factors lose no bit, cubes keep small numbers apart, and integers wrap: no order of the sum matters.
        factors = torch.arange(1, 2 * whole.shape[1], 2, dtype=torch.int64, device=whole.device).pow(3)
        found: list[int] = ((whole + 1) * whole * factors).sum(dim=1).tolist()
        return found
