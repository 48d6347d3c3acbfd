"""Which random numbers the first step draws on its way from batch to loss: dropout masks, noise, sampled latents."""

from __future__ import annotations

import zlib

import torch

from . import hashing


class Draws:
    """Follows the states of torch's generators from the first batch to the first backward."""

    def __init__(self) -> None:
        self._before: int | None = None
        self._last: int | None = None
        """State after the last dropout, or where it all began."""
        self._known = True
        """Whether all random numbers were dropouts', each told from the others by its place and layout."""
        self._masks: list[str] = []
        self._labels: set[str] = set()
        self.any: bool | None = None
        """Whether anything was drawn; None before the first backward."""

    @property
    def is_open(self) -> bool:
        """Whether the first step is on its way."""
        return self.any is None and self._before is not None

    def begin(self, *, anew: bool) -> None:
        """Note the state, where a batch arrives (`anew`) or else where the forward begins."""
        if self.any is None and (anew or self._before is None):
            self._before = self._last = _state()
            self._known, self._masks, self._labels = True, [], set()

    def enter(self, label: str) -> None:
        """Note that a dropout is about to draw its mask.

        Two of one label could change places unseen.
        """
        state = _state()
        self._known &= state == self._last and label not in self._labels
        self._labels.add(label)
        self._masks.append(f"{label} {state}")

    def leave(self) -> None:
        """Note that it has drawn it."""
        self._last = _state()

    def end(self) -> None:
        """Compare the state with that of the beginning, at the first backward."""
        if self.is_open:
            state = _state()
            self._known &= state == self._last
            self._masks.append(str(state))
            self.any = self._before != state

    def masks(self) -> int | None:
        """Return a hash of all masks, by their order, places, layouts and rates; None where they are not all known."""
        if not self.any or not self._known:
            return None
        return zlib.crc32("\n".join(self._masks).encode())


def _state() -> int:
    states = [torch.get_rng_state()]
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        states += torch.cuda.get_rng_state_all()
    return hashing.together(hashing.of_tensor(state, limit=None) for state in states)
