"""What the optimizer remembers: first and second moments, and how far the gradient has run away from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from .names import Watched
from .tensors import dense, spread

FIRST = ("exp_avg", "momentum_buffer")
"""Names of the running mean of gradients: the Adam family and Lion, SGD with momentum and Muon."""
SECOND = ("exp_avg_sq", "square_avg")
"""Names of the running mean of squared gradients: the Adam family, RMSprop and Adadelta."""


@dataclass(slots=True)
class States:
    """Optimizer state of some parameters: their places, and one tensor each."""

    places: list[int] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)

    def add(self, place: int, state: Mapping[str, Any], names: tuple[str, ...]) -> None:
        """Take the state called one of `names`, if there is one."""
        for name in names:
            value = state.get(name)
            if isinstance(value, Tensor):
                self.places.append(place)
                self.tensors.append(value)
                return


def states(watched: Watched, optimizers: Sequence[torch.optim.Optimizer]) -> tuple[States, States]:
    """Return the first and second moments of the parameters that have them."""
    first, second = States(), States()
    for optimizer in optimizers:
        for parameter, state in optimizer.state.items():
            place = watched.index.get(id(parameter))
            if place is not None:
                first.add(place, state, FIRST)
                second.add(place, state, SECOND)
    return first, second


def rms_sums(
    watched: Watched,
    optimizers: Sequence[torch.optim.Optimizer],
    scale: Tensor | None,
    size: int,
) -> tuple[list[int], Tensor, list[int]] | None:
    """Return what RMS_t of each parameter is made of: places, sums of g²/u, how many numbers were summed.

    RMS_t = sqrt(mean(g² / u)) where u is the bias-corrected second moment that the coming Adam step will divide
    by (Wortsman et al., "Stable and low-precision training", 2023, section 3.4). It is 1 while the second
    moment keeps up; far above, the step is larger than Adam believes. Taken on a spread sample of `size` numbers.
    """
    places: list[int] = []
    grads: list[Tensor] = []
    seconds: list[Tensor] = []
    keep: list[float] = []
    steps: list[Tensor | float] = []
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            betas = group.get("betas")
            if not isinstance(betas, Sequence) or not all(isinstance(b, float) for b in betas):
                continue
            for parameter in group["params"]:
                place = watched.index.get(id(parameter))
                state = optimizer.state.get(parameter) if place is not None else None
                second = state.get("exp_avg_sq") if state else None
                grad = parameter.grad
                if place is None or second is None or grad is None or grad.layout != torch.strided:
                    continue
                places.append(place)
                grads.append(spread(dense(grad), size))
                seconds.append(spread(dense(second), size))
                keep.append(betas[-1])
                steps.append(state["step"] if "step" in state else 0.0)
    if not places:
        return None
    return places, _rms_sums(grads, seconds, keep, steps, scale), [g.numel() for g in grads]


def _rms_sums(
    grads: list[Tensor],
    seconds: list[Tensor],
    keep: list[float],
    steps: list[Tensor | float],
    scale: Tensor | None,
) -> Tensor:
    # The samples are copies from here on: the optimizer's own tensors stay as they are.
    kinds = [s.dtype for s in seconds]
    squares = [g.to(kind) for g, kind in zip(grads, kinds, strict=True)]
    if scale is not None:
        squares = list(torch._foreach_div(squares, scale))
    squares = list(torch._foreach_mul(squares, squares))
    coming = list(torch._foreach_mul(seconds, keep))
    torch._foreach_add_(coming, torch._foreach_mul(squares, [1 - k for k in keep]))
    torch._foreach_clamp_min_(coming, 1e-30)
    torch._foreach_div_(squares, coming)
    device = squares[0].device
    sums = torch.stack([torch.sum(s, dtype=torch.float32).to(device) for s in squares])
    count = torch.stack([torch.as_tensor(s, dtype=torch.float32).to(device, non_blocking=True) for s in steps]) + 1
    return sums * (1 - torch.tensor(keep, dtype=torch.float32).to(device, non_blocking=True) ** count)
