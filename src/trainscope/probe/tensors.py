"""Plain, dense, real views of whatever a parameter, gradient or optimizer state may be."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

_PLAIN = (Tensor, torch.nn.Parameter)
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
    if type(tensor) in _PLAIN and tensor.layout == torch.strided and not tensor.is_complex():
        return tensor  # the usual case, four times a parameter and step: nothing to undo
    tensor = local(tensor)
    if tensor.layout != torch.strided:
        tensor = tensor.coalesce().values() if tensor.layout == torch.sparse_coo else tensor.values()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor


def is_measurable(tensor: Tensor) -> bool:
    """Tell whether statistics of `tensor` mean something (not of packed integers, nor before lazy initialisation)."""
    lazy = isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin)
    return not lazy and (tensor.is_floating_point() or tensor.is_complex()) and tensor.element_size() >= 2


def wide_dtype(device: torch.device) -> torch.dtype:
    """Return the widest float type of `device` (Apple's GPUs have no float64)."""
    return torch.float32 if device.type == "mps" else torch.float64


def spread(tensor: Tensor, size: int) -> Tensor:
    """Return a view of at least `size` (or all) numbers spread evenly over a dense tensor.

    The stride shares no factor with the last dimension, so that the sample visits every column.
    """
    flat = tensor.view(-1) if tensor.is_contiguous() else tensor.reshape(-1)
    stride = flat.numel() // size
    if stride < 2:
        return flat
    width = tensor.shape[-1]
    while math.gcd(stride, width) > 1:
        stride -= 1
    return flat[::stride]
