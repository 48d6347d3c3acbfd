"""Activation statistics, from forward hooks that exist only during the steps that are sampled.

Every training forward of the step counts, so that with gradient accumulation the numbers are over all
micro-batches (up to `MOST_FORWARDS`): extremes and dead units of all numbers, the rest of up to `SAMPLE`
numbers of whole examples in each forward. A forward of the model in evaluation mode, under
``inference_mode``, or inside a backward (the second run of activation checkpointing) does not count, nor do
tracing and functorch transforms. Modules compiled by ``torch.compile`` are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .compiling import is_compiled
from .forward_moments import Forward, Meter
from .names import modules
from .outputs import unpacked
from .tensors import dense

MOST_FORWARDS = 256
"""Of one module in one step: a loop that trains for long without telling must not fill the memory."""
_SILENT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.Identity, nn.Flatten)
_FUNCTIONS = (
    *(nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.RReLU, nn.ELU, nn.CELU, nn.SELU, nn.GELU, nn.SiLU),
    *(nn.Mish, nn.Hardswish, nn.Softplus, nn.Sigmoid, nn.Tanh, nn.GLU),
)
"""Modules after which a unit that never answers is dead."""


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """The activations of one sampled step, still on the device."""

    layout: Layout
    rows: Tensor
    """(forwards, FIELDS), module after module."""
    dead: Tensor
    """Share of units that stayed at 0, of the modules that `layout` says."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What the numbers of a sampled step belong to; most steps have the same."""

    names: tuple[str, ...]
    """The n modules."""
    counts: tuple[tuple[int, ...], ...]
    """Numbers measured in each forward of each module."""
    thirds: bool
    """Whether third powers were summed."""
    functions: tuple[int, ...]
    """Which modules are activation functions."""


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
        self._seen: dict[str, list[Forward]] = {}
        self._meter = Meter()

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

    def look_again(self) -> None:
        """List the modules anew."""
        self._leaves = None
        if self._armed:
            self.disarm()
            self.arm()

    def collect(self) -> Sampled | None:
        """Return what was seen since the last call, None if nothing was."""
        seen, self._seen = self._seen, {}
        if not seen:
            return None
        rows = self._meter.take()
        thirds, self._meter.thirds = self._meter.thirds, any(len(forwards) > 1 for forwards in seen.values())
        numbers = [forward.number for forwards in seen.values() for forward in forwards]
        if numbers != sorted(numbers):  # several forwards of several modules take turns
            rows = rows[torch.tensor(numbers, device="cpu").to(rows.device, non_blocking=True)]
        peaks = [_peak(forwards) for forwards in seen.values()]
        counts = tuple(tuple(forward.count for forward in forwards) for forwards in seen.values())
        functions = tuple(i for i, peak in enumerate(peaks) if peak is not None)
        dead = [(peak <= 0).float().mean().to(rows.device, non_blocking=True) for peak in peaks if peak is not None]
        return Sampled(
            Layout(tuple(seen), counts, thirds, functions),
            rows,
            torch.stack(dead) if dead else rows.new_empty(0),
        )

    def _hook(self, name: str) -> Callable[..., None]:
        def hook(module: nn.Module, _args: object, output: object) -> None:
            if torch.compiler.is_compiling() or not self._counts():
                return
            if len(self._seen.get(name, ())) >= MOST_FORWARDS:
                return
            tensor = main_tensor(output)
            if tensor is not None and tensor.numel() and not tensor.is_meta:
                with torch.no_grad():
                    self._note(name, module, dense(tensor))

        return self._guard(hook)

    def _note(self, name: str, module: nn.Module, values: Tensor) -> None:
        units: tuple[int, ...] = ()
        if isinstance(module, _FUNCTIONS) and values.dim() > 1:
            unit = 1 if values.dim() == 4 else values.dim() - 1  # channels of an image, else the last dimension
            units = tuple(d for d in range(values.dim()) if d != unit)
        forwards = self._seen.setdefault(name, [])
        forwards.append(self._meter.measure(values, units))


def _peak(forwards: Sequence[Forward]) -> Tensor | None:
    """Return the largest magnitude of every unit over the forwards; the last, where their shapes differ."""
    peak: Tensor | None = None
    for forward in forwards:
        if forward.peak is not None:
            same = peak is not None and peak.shape == forward.peak.shape
            peak = torch.maximum(peak, forward.peak) if peak is not None and same else forward.peak
    return peak


def main_tensor(output: object) -> Tensor | None:
    """Return the floating-point tensor an output is about: itself, or the first of several."""
    if isinstance(output, Tensor):
        return output if output.is_floating_point() or output.is_complex() else None
    output = unpacked(output)
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
