"""Whether the first step draws random numbers on its way from batch to loss: dropout, noise, sampled latents."""

from __future__ import annotations

import torch

from . import hashing


class Draws:
    """Compares the states of torch's generators before the first forward and at the first backward."""

    def __init__(self) -> None:
        self._before: tuple[int, ...] | None = None
        self.any: bool | None = None
        """None before the first backward."""

    def begin(self, *, anew: bool) -> None:
        """Note the state, where a batch arrives (`anew`) or else where the forward begins."""
        if self.any is None and (anew or self._before is None):
            self._before = _state()

    def end(self) -> None:
        """Compare it, at the first backward."""
        if self.any is None and self._before is not None:
            self.any = self._before != _state()


def _state() -> tuple[int, ...]:
    states = [torch.get_rng_state()]
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        states += torch.cuda.get_rng_state_all()
    return tuple(hashing.of_tensor(state, limit=None) for state in states)
