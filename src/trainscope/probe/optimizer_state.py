"""What the optimizer remembers: first and second moments, and how far the gradient has run away from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .names import Watched
from .tensors import dense_all, runs

Entry = tuple[int, dict[str, Any], str]
Found = tuple[list[int], list[Tensor]]

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

    def tensors(self) -> tuple[Found, Found]:
        """Return places and tensors of the first moments, and of the second."""
        # load_state_dict puts new dictionaries in place; the tensors inside are asked for anew every time.
        known = tuple((id(o.state), len(o.state)) for o in self._optimizers)
        if known != self._known:
            self._known = known
            self._first, self._second = self._find(FIRST), self._find(SECOND)
        return _tensors(self._first), _tensors(self._second)

    def _find(self, names: tuple[str, ...]) -> list[Entry]:
        found: list[Entry] = []
        for optimizer in self._optimizers:
            for parameter, state in optimizer.state.items():
                place = self._watched.index.get(id(parameter))
                name = next((n for n in names if isinstance(state.get(n), Tensor)), None)
                if place is not None and name is not None:
                    found.append((place, state, name))
        return sorted(found, key=lambda entry: entry[0])


def _tensors(entries: list[Entry]) -> Found:
    return [place for place, _, _ in entries], [state[name] for _, state, name in entries]


def rms_sums(
    watched: Watched,
    optimizers: Sequence[torch.optim.Optimizer],
    scale: Tensor | float | None,
    size: int,
) -> tuple[list[int], Tensor, list[int]] | None:
    """Return what RMS_t of each parameter is made of: places, sums of g²/u, how many numbers were summed.

    RMS_t = sqrt(mean(g² / u)) where u is the bias-corrected second moment that the coming Adam step will
    divide by (Wortsman et al., "Stable and low-precision training", 2023, section 3.4). It is 1 while the
    second moment keeps up; far above, the step is larger than Adam believes. Taken on a spread sample of
    `size` numbers.
    """
    found: list[tuple[int, Tensor, Tensor, float, Tensor | float]] = []
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            betas = group.get("betas")
            if not isinstance(betas, Sequence) or not all(isinstance(b, float) for b in betas):
                continue
            for parameter in group["params"]:
                place = watched.index.get(id(parameter))
                state: dict[str, Any] = optimizer.state.get(parameter, {})
                grad = parameter.grad
                if place is None or "exp_avg_sq" not in state or grad is None or grad.layout != torch.strided:
                    continue
                found.append((place, grad, state["exp_avg_sq"], betas[-1], state.get("step", 0.0)))
    if not found:
        return None
    found.sort(key=lambda entry: entry[0])
    places, grads, seconds, keep, steps = (list(column) for column in zip(*found, strict=True))
    if any(g.stride() != s.stride() for g, s in zip(grads, seconds, strict=True)):
        grads, seconds = [g.contiguous() for g in grads], [s.contiguous() for s in seconds]
    grads, seconds = (
        [runs(g, size).reshape(-1) for g in dense_all(grads)],
        [runs(s, size).reshape(-1) for s in dense_all(seconds)],
    )
    counts = [g.numel() for g in grads]
    return places, _rms_sums(grads, seconds, counts, keep, steps, scale), counts


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
    lengths = torch.tensor(counts).to(device, non_blocking=True)
    decay = torch.tensor(keep).to(device, non_blocking=True)
    each: Tensor | float = keep[0] if len(set(keep)) == 1 else decay.repeat_interleave(lengths)
    coming = torch.cat(seconds).to(torch.float32) * each + squares * (1 - each)
    sums = torch.segment_reduce(squares / coming.clamp_min_(1e-30), "sum", lengths=lengths, unsafe=True)
    if all(isinstance(s, Tensor) for s in steps):
        done = torch.stack([s for s in steps if isinstance(s, Tensor)])
    else:
        done = torch.tensor([s for s in steps if not isinstance(s, Tensor)] or [0.0])
    return sums * (1 - decay ** (done.to(device, torch.float32, non_blocking=True) + 1))
