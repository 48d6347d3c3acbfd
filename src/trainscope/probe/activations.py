"""Activation statistics, from forward hooks that exist only during the steps that are sampled.

Every training forward of the step counts, so that with gradient accumulation the numbers are over all
micro-batches. A forward of the model in evaluation mode, under ``inference_mode``, or inside a backward
(the second run of activation checkpointing) does not count. Modules compiled by ``torch.compile`` are left
alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from .compiling import is_compiled
from .moments import piece_sizes
from .names import modules
from .tensors import dense, spread

MEDIAN_SAMPLE = 1_024
"""Numbers per forward that the median is taken of: its standard error is 0.04 standard deviations."""
_SILENT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.Identity, nn.Flatten)
_FUNCTIONS = (
    *(nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.RReLU, nn.ELU, nn.CELU, nn.SELU, nn.GELU, nn.SiLU),
    *(nn.Mish, nn.Hardswish, nn.Softplus, nn.Sigmoid, nn.Tanh, nn.GLU),
)
"""Modules after which a unit that never answers is dead."""


@dataclass(slots=True, eq=False)
class Seen:
    """What one module gave at one sampled step."""

    rows: list[tuple[Tensor, list[Tensor]]] = field(default_factory=list)
    """For each forward, what `Activations._measure` returned."""
    counts: list[int] = field(default_factory=list)
    """Numbers in each forward."""
    samples: list[Tensor] = field(default_factory=list)
    peak: Tensor | None = None
    """Largest magnitude of every unit so far; only after activation functions."""


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """The activations of one sampled step, still on the device."""

    names: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    """Numbers in each forward of each module."""
    pieces: tuple[int, ...]
    """Pieces that each forward was cut into, module after module."""
    rows: Tensor
    """The mean of each forward, then five numbers a piece."""
    thirds: bool
    """Whether third powers were summed."""
    medians: Tensor
    """(n,)"""
    dead: Tensor
    """(n,) share of units that stayed at 0; NaN where it is not an activation function."""


class Activations:
    """Hooks on the leaf modules of one model.

    Parameters
    ----------
    model : Module
    chosen : sequence of str, optional
        Only modules whose name contains one of these; None is all leaf modules.
    counts : callable
        Tells whether the forward that is going on belongs to training.
    guard : callable
        Wraps a hook so that a fault in it is noted and the forward goes on.
    """

    def __init__(
        self,
        model: nn.Module,
        chosen: Sequence[str] | None,
        counts: Callable[[], bool],
        guard: Callable[[Callable[..., None]], Callable[..., None]],
    ) -> None:
        self._model = model
        self._chosen = chosen
        self._counts = counts
        self._guard = guard
        self._handles: list[Any] = []
        self._armed = False
        self._leaves: list[tuple[nn.Module, Callable[..., None]]] | None = None
        self._all: list[nn.Module] = []
        self._seen: dict[str, Seen] = {}
        self._thirds = True
        """Whether third powers are summed: merging several forwards needs them, and one forward does not."""
        self._scratch: tuple[Tensor, Tensor] | None = None

    @property
    def armed(self) -> bool:
        """Whether the hooks are in place."""
        return self._armed

    def arm(self) -> None:
        """Put the hooks in place."""
        if self._leaves is None or any(is_compiled(module) for module in self._all):
            self._all = list(self._model.modules())
            self._leaves = [
                (module, self._hook(name))
                for name, module in leaves(self._model)
                if self._chosen is None or any(part in name for part in self._chosen)
            ]
        self._handles = [module.register_forward_hook(hook) for module, hook in self._leaves]
        self._armed = True

    def disarm(self) -> None:
        """Take every hook away."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._armed = False

    def collect(self) -> Sampled | None:
        """Return what was seen since the last call, None if nothing was."""
        seen, self._seen = self._seen, {}
        if not seen:
            return None
        rows = [row for s in seen.values() for row in s.rows]
        thirds, self._thirds = self._thirds, any(len(s.rows) > 1 for s in seen.values())
        device = rows[0][0].device
        flat = [mean for mean, _ in rows] + [value for _, row in rows for value in row]
        if any(value.device != device or value.dtype != flat[0].dtype for value in flat):
            flat = [value.to(device, torch.float32, non_blocking=True) for value in flat]
        samples = [s.samples[0] if len(s.samples) == 1 else torch.cat(s.samples) for s in seen.values()]
        missing = torch.full((), torch.nan, device=device)
        dead = [
            missing if s.peak is None else (s.peak <= 0).float().mean().to(device, non_blocking=True)
            for s in seen.values()
        ]
        return Sampled(
            tuple(seen),
            tuple(tuple(s.counts) for s in seen.values()),
            tuple(len(row) // 5 for _, row in rows),
            torch.stack(flat),
            thirds,
            _medians([sample.to(device, non_blocking=True) for sample in samples]),
            torch.stack(dead),
        )

    def _hook(self, name: str) -> Callable[..., None]:
        def hook(module: nn.Module, _args: object, output: object) -> None:
            if torch.compiler.is_compiling() or not self._counts():
                return
            tensor = main_tensor(output)
            if tensor is not None and tensor.numel():
                with torch.no_grad():
                    self._note(name, module, dense(tensor))

        return self._guard(hook)

    def _note(self, name: str, module: nn.Module, values: Tensor) -> None:
        seen = self._seen.setdefault(name, Seen())
        flat = values.reshape(-1)
        seen.rows.append(self._measure(flat))
        seen.counts.append(flat.numel())
        # Cloned: a view would keep the activation in memory.
        seen.samples.append(spread(values, MEDIAN_SAMPLE)[:MEDIAN_SAMPLE].to(torch.float32, copy=True))
        if isinstance(module, _FUNCTIONS) and values.dim() > 1:
            units = 1 if values.dim() == 4 else values.dim() - 1  # channels of an image, else the last dimension
            peak = values.abs().amax(dim=[d for d in range(values.dim()) if d != units])
            if seen.peak is None or seen.peak.shape != peak.shape:
                seen.peak = peak
            else:
                seen.peak = torch.maximum(seen.peak, peak)

    def _measure(self, flat: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the mean, and for every piece: sum of 2nd powers, root of 4th, 3rd; lowest, highest."""
        count = flat.numel()
        kind = torch.float64 if flat.dtype == torch.float64 else torch.float32
        pieces = flat.split_with_sizes(piece_sizes(count)) if flat.is_cpu else (flat,)
        first, second = self._buffers(pieces[0].numel(), kind, flat.device)
        sums = [torch.sum(piece, dtype=kind) for piece in pieces]
        mean = (sums[0] if len(sums) == 1 else torch.stack(sums).sum()) / count
        rows: list[Tensor] = []
        for piece in pieces:
            centred = first[: piece.numel()]
            if piece.dtype == kind:
                torch.sub(piece, mean, out=centred)
            else:
                centred.copy_(piece).sub_(mean)
            low, high = torch.aminmax(centred)
            # No dot products: they wake the threads of another library.
            if self._thirds:
                squared = torch.mul(centred, centred, out=second[: piece.numel()])
                rows += [
                    squared.sum(),
                    torch.linalg.vector_norm(squared),
                    centred.mul_(squared).sum(),
                    low,
                    high,
                ]
            else:
                centred.mul_(centred)
                rows += [centred.sum(), torch.linalg.vector_norm(centred), mean, low, high]
        return mean, rows

    def _buffers(self, size: int, kind: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
        kept = self._scratch
        if kept is None or kept[0].numel() < size or kept[0].dtype != kind or kept[0].device != device:
            kept = (
                torch.empty(size, dtype=kind, device=device),
                torch.empty(size, dtype=kind, device=device),
            )
            self._scratch = kept if device.type == "cpu" else None
        return kept


def _medians(samples: list[Tensor]) -> Tensor:
    if len({sample.numel() for sample in samples}) == 1:
        return torch.stack(samples).median(dim=1).values
    return torch.stack([sample.median() for sample in samples])


def main_tensor(output: object) -> Tensor | None:
    """Return the floating-point tensor an output is about: itself, or the first of several."""
    if isinstance(output, Tensor):
        return output if output.is_floating_point() or output.is_complex() else None
    if isinstance(output, dict) or hasattr(output, "values"):
        output = tuple(output.values())
    if isinstance(output, (tuple, list)):
        return next((found for part in output if (found := main_tensor(part)) is not None), None)
    return None


def leaves(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """List the modules whose output is worth measuring: those without children, and whole attentions."""
    inside: set[int] = set()
    found: list[tuple[str, nn.Module]] = []
    for name, module in modules(model):
        if id(module) in inside or isinstance(module, _SILENT) or (not name and next(module.children(), None)):
            continue
        if isinstance(module, nn.MultiheadAttention):
            inside.update(id(child) for child in module.modules())
            found.append((name, module))
        elif next(module.children(), None) is None:
            found.append((name, module))
        elif next(iter(module._parameters.values()), None) is not None:
            found.append((name, module))  # children, and weights of its own that they do not use
    return found


def combine(rows: Tensor, counts: Sequence[Sequence[int]], pieces: Sequence[int], *, thirds: bool) -> Tensor:
    """Merge pieces and forwards of each module, on the host, in float64.

    Forwards are merged with the pairwise update of central moments (Pébay, "Formulas for robust, one-pass
    parallel computation of covariances and arbitrary-order statistical moments", 2008).

    Returns
    -------
    (n, 7) Tensor
        Count, mean, sums of the 2nd, 3rd and 4th power around the mean, lowest, highest.
    """
    rows = rows.double()
    mean, table = rows[: len(pieces)], rows[len(pieces) :].view(-1, 5)
    table[:, 1].square_()
    lengths = torch.tensor(pieces)
    if not thirds:
        table[:, 2] = torch.nan
    second, fourth, third = torch.segment_reduce(table[:, :3].contiguous(), "sum", lengths=lengths).unbind(1)
    low = torch.segment_reduce(table[:, 3].contiguous(), "min", lengths=lengths) + mean
    high = torch.segment_reduce(table[:, 4].contiguous(), "max", lengths=lengths) + mean
    numbers = torch.tensor([float(n) for module in counts for n in module], dtype=torch.float64)
    forwards = torch.stack([numbers, mean, second, third, fourth, low, high], 1)
    if len(forwards) == len(counts):
        return forwards
    return torch.stack([functools.reduce(_merge, f) for f in forwards.split_with_sizes([len(c) for c in counts])])


def _merge(a: Tensor, b: Tensor) -> Tensor:
    (na, ma, a2, a3, a4, la, ha), (nb, mb, b2, b3, b4, lb, hb) = a.unbind(), b.unbind()
    n, d = na + nb, mb - ma
    s2 = a2 + b2 + d**2 * na * nb / n
    s3 = a3 + b3 + d**3 * na * nb * (na - nb) / n**2 + 3 * d * (na * b2 - nb * a2) / n
    s4 = (
        a4
        + b4
        + d**4 * na * nb * (na**2 - na * nb + nb**2) / n**3
        + 6 * d**2 * (na**2 * b2 + nb**2 * a2) / n**2
        + 4 * d * (na * b3 - nb * a3) / n
    )
    return torch.stack([n, ma + d * nb / n, s2, s3, s4, torch.minimum(la, lb), torch.maximum(ha, hb)])
