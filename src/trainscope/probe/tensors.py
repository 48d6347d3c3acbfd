"""Plain, dense, real views of whatever a parameter, gradient or optimizer state may be."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.parameter import is_lazy

_PLAIN = (Tensor, torch.nn.Parameter)
_COMPLEX = (torch.complex64, torch.complex128, torch.complex32)
LOW_PRECISION = (torch.float16, torch.bfloat16)


def is_sharded(tensor: Tensor) -> bool:
    """Tell whether `tensor` is a DTensor, of which this rank holds a part."""
    return hasattr(tensor, "to_local") and hasattr(tensor, "placements")


def local(tensor: Tensor) -> Tensor:
    """Return the part of `tensor` on this rank, detached; no collective, no copy."""
    tensor = tensor.detach()
    part: Any = tensor
    if is_sharded(tensor):
        part = part.to_local()
        if type(part).__name__ == "AsyncCollectiveTensor":
            part = part.wait()
    return part  # type: ignore[no-any-return]


def dense(tensor: Tensor) -> Tensor:
    """Return the stored numbers of `tensor` on this rank as a dense real tensor; call it under ``no_grad``.

    A sparse gradient gives its coalesced values (duplicates added up, as the optimizer will see them);
    a complex tensor its real and imaginary parts side by side, which leaves the L2 norm as it is.
    """
    tensor = local(tensor)
    if tensor.layout != torch.strided:
        tensor = tensor.coalesce().values() if tensor.layout == torch.sparse_coo else tensor.values()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor


def dense_all(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return :func:`dense` of each, on the device of the first; call it under ``no_grad``."""
    if not any(type(t) not in _PLAIN or t.layout != torch.strided or t.dtype in _COMPLEX for t in tensors):
        parts = list(tensors)  # the usual case, many times a step: nothing to undo
    else:
        parts = [dense(t) for t in tensors]
    device = parts[0].device
    if any(part.device != device for part in parts):
        parts = [part.to(device, non_blocking=True) for part in parts]
    return parts


def is_measurable(tensor: Tensor) -> bool:
    """Tell whether statistics of `tensor` mean something: not of integers, nor before it has a shape and numbers."""
    missing = is_lazy(tensor) or tensor.is_meta
    return not missing and (tensor.is_floating_point() or tensor.is_complex()) and tensor.element_size() >= 2


def wide_dtype(device: torch.device) -> torch.dtype:
    """Return the widest float type of `device` (Apple's GPUs have no float64)."""
    return torch.float32 if device.type == "mps" else torch.float64


def flatten(tensor: Tensor) -> Tensor:
    """Return the numbers of a dense tensor in one dimension, in the order of memory: a view if they have no gaps."""
    if tensor.dim() == 1:
        return tensor
    if not tensor.is_contiguous():
        order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
        tensor = tensor.permute(order)  # channels last, transposed
    return tensor.view(-1) if tensor.is_contiguous() else tensor.reshape(-1)


def spread(tensor: Tensor, size: int) -> Tensor:
    """Return a view of at least `size` (or all) numbers spread evenly over a dense tensor.

    The stride shares no factor with the last dimension, so that the sample visits every column.
    """
    flat = tensor.view(-1) if tensor.is_contiguous() else tensor.reshape(-1)
    stride = _stride(flat.numel(), tensor.shape[-1] if tensor.dim() else 1, size)
    return flat if stride == 1 else flat[::stride]


@functools.lru_cache(maxsize=4096)
def _stride(numel: int, width: int, size: int) -> int:
    stride = max(1, numel // size)
    while math.gcd(stride, width) > 1:
        stride -= 1
    return stride


RUN = 32
"""Neighbouring numbers in a sample of a weight: two lines of the cache, which costs as little as two numbers."""


def runs(tensor: Tensor, size: int) -> Tensor:
    """Return a view of at least `size` (or all) numbers of a dense tensor, in runs spread evenly over it.

    The stride shares no factor with the last dimension in runs, so that the sample visits every column.
    """
    flat = flatten(tensor)
    if flat.numel() <= size:
        return flat
    rows = flat.numel() // RUN
    width = tensor.shape[-1] if tensor.dim() else 1
    stride = _stride(rows, width // math.gcd(width, RUN), size // RUN)
    return flat[: rows * RUN].view(rows, RUN)[::stride]
