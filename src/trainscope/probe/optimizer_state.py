"""What the optimizer remembers: first and second moments, and how far the gradient has run away from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .names import Watched
from .tensors import dense_all, runs

Entry = tuple[int, dict[str, Any], str]
Found = tuple[list[int], list[Tensor]]


@dataclass(frozen=True, slots=True, eq=False)
class Adam:
    """What an optimizer of the Adam family keeps of one parameter."""

    place: int
    state: dict[str, Any]
    group: dict[str, Any]


FIRST = ("exp_avg", "momentum_buffer")
"""Names of the running mean of gradients: the Adam family and Lion, SGD with momentum and Muon."""
SECOND = ("exp_avg_sq", "square_avg")
"""Names of the running mean of squared gradients: the Adam family, RMSprop and Adadelta."""


class States:
    """First and second moments of the watched parameters, looked up once and then followed."""

    def __init__(self, watched: Watched, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        self._watched, self._optimizers = watched, optimizers
        self._known: tuple[tuple[int, int], ...] = ()
        self._first: list[Entry] = []
        self._second: list[Entry] = []
        self._adam: list[Adam] = []

    def tensors(self) -> tuple[Found, Found]:
        """Return places and tensors of the first moments, and of the second."""
        self._look()
        return _tensors(self._first), _tensors(self._second)

    def adam(self) -> Sequence[Adam]:
        """Return the parameters that Adam has stepped, in order of their places."""
        self._look()
        return self._adam

    def _look(self) -> None:
        # load_state_dict puts new dictionaries in place; the tensors inside are asked for anew every time.
        states = [_state(o) for o in self._optimizers]
        known = tuple([(id(state), len(state)) for state in states])
        if known != self._known:
            self._known = known
            self._first, self._second = self._find(FIRST), self._find(SECOND)
            self._adam = self._find_adam()

    def _find_adam(self) -> list[Adam]:
        found: list[Adam] = []
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                betas = group.get("betas")
                if not isinstance(betas, Sequence) or not all(isinstance(b, float) for b in betas):
                    continue
                for parameter in group["params"]:
                    place = self._watched.index.get(id(parameter))
                    state = _state(optimizer).get(parameter, {})
                    if place is not None and isinstance(state.get("exp_avg_sq"), Tensor):
                        found.append(Adam(place, state, group))
        return sorted(found, key=lambda one: one.place)

    def _find(self, names: tuple[str, ...]) -> list[Entry]:
        found: list[Entry] = []
        for optimizer in self._optimizers:
            for parameter, state in _state(optimizer).items():
                place = self._watched.index.get(id(parameter))
                name = next((n for n in names if isinstance(state.get(n), Tensor)), None)
                if place is not None and name is not None:
                    found.append((place, state, name))
        return sorted(found, key=lambda entry: entry[0])


def _state(optimizer: torch.optim.Optimizer) -> Mapping[Tensor, dict[str, Any]]:
    """Return what an optimizer keeps by parameter; one that somebody wrote may keep nothing."""
    return getattr(optimizer, "state", {})


def _tensors(entries: list[Entry]) -> Found:
    return [place for place, _, _ in entries], [state[name] for _, state, name in entries]


def rms_sums(
    adam: Sequence[Adam], grads: Sequence[Tensor | None], scale: Tensor | float | None, size: int
) -> tuple[list[int], Tensor, list[int]] | None:
    """Return what RMS_t of each parameter is made of: places, sums of g²/u, how many numbers were summed.

    RMS_t = sqrt(mean(g² / u)) where u is the bias-corrected second moment that the coming Adam step will
    divide by (Wortsman et al., "Stable and low-precision training", 2023, section 3.4). It is 1 while the
    second moment keeps up; far above, the step is larger than Adam believes. Taken on a spread sample of
    `size` numbers.

    Parameters
    ----------
    grads
        Gradient of every watched parameter.
    """
    known = [one for one in adam if (g := grads[one.place]) is not None and g.layout == torch.strided]
    if not known:
        return None
    found = [g for one in known if (g := grads[one.place]) is not None]
    seconds = [one.state["exp_avg_sq"] for one in known]
    if any(g.stride() != s.stride() for g, s in zip(found, seconds, strict=True)):
        found, seconds = [g.contiguous() for g in found], [s.contiguous() for s in seconds]
    found, seconds = _samples(found, size), _samples(seconds, size)
    counts = [g.numel() for g in found]
    keep = [float(one.group["betas"][-1]) for one in known]
    steps = [one.state.get("step", 0.0) for one in known]
    return [one.place for one in known], _rms_sums(found, seconds, counts, keep, steps, scale), counts


def _samples(tensors: Sequence[Tensor], size: int) -> list[Tensor]:
    """Return a flat sample of each; one that is flat and short is its own."""
    return [t if t.dim() == 1 and t.numel() <= size else runs(t, size).reshape(-1) for t in dense_all(tensors)]


def _rms_sums(
    grads: list[Tensor],
    seconds: list[Tensor],
    counts: list[int],
    keep: list[float],
    steps: list[Tensor | float],
    scale: Tensor | float | None,
) -> Tensor:
    device = seconds[0].device
    squares = torch.cat(grads).to(torch.float32)
    if scale is not None:
        squares /= scale
    squares.square_()
    lengths = torch.tensor(counts, device="cpu").to(device, non_blocking=True)
    decay = torch.tensor(keep, device="cpu").to(device, non_blocking=True)
    each: Tensor | float = keep[0] if len(set(keep)) == 1 else decay.repeat_interleave(lengths)
    coming = torch.cat(seconds).to(torch.float32) * each + squares * (1 - each)
    sums = torch.segment_reduce(squares / coming.clamp_min_(1e-30), "sum", lengths=lengths, unsafe=True)
    if all(isinstance(s, Tensor) for s in steps):
        done = torch.stack([s for s in steps if isinstance(s, Tensor)])
    else:
        done = torch.tensor([s for s in steps if not isinstance(s, Tensor)] or [0.0], device="cpu")
    return sums * (1 - decay ** (done.to(device, torch.float32, non_blocking=True) + 1))
