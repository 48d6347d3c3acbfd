"""CRC-32 of tensors and batches: equal bytes, equal numbers."""

from __future__ import annotations

import ctypes
import struct
import sys
import zlib
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

SAMPLE_BYTES = 65_536
"""Bytes of one tensor that are hashed, spread evenly: a batch of images must not slow the step down."""


def is_unreal(tensor: Tensor) -> bool:
    """Tell whether a tensor has no numbers: on the meta device, or fake."""
    fake = getattr(sys.modules.get("torch._subclasses.fake_tensor"), "FakeTensor", ())
    return tensor.is_meta or isinstance(tensor, fake)


def of_tensor(tensor: Tensor, *, limit: int | None = SAMPLE_BYTES) -> int:
    """Return the hash of a tensor's shape, dtype and bytes."""
    label = f"{tuple(tensor.shape)}{tensor.dtype}".encode()
    found = zlib.crc32(label)
    if tensor.layout != torch.strided or not tensor.numel() or is_unreal(tensor):
        return found
    with torch.no_grad():
        flat = tensor.detach().reshape(-1)
        if limit is not None:
            flat = flat[:: max(1, flat.numel() * flat.element_size() // limit)]
        flat = torch.view_as_real(flat) if flat.is_complex() else flat
        data = flat.cpu().contiguous().view(torch.uint8)
    # Not through NumPy: torch runs without it.
    return zlib.crc32((ctypes.c_char * data.numel()).from_address(data.data_ptr()), found)


def of_batch(batch: object) -> int:
    """Return the hash of whatever a loader gives: tensors, numbers and text in any nesting."""
    found, stack = 0, [batch]
    while stack:
        item = stack.pop()
        if isinstance(item, Tensor):
            found = zlib.crc32(struct.pack("<I", of_tensor(item)), found)
        elif isinstance(item, Mapping) or (hasattr(item, "data") and hasattr(item, "items")):
            stack.extend(item.values())  # type: ignore[attr-defined]
        elif isinstance(item, (list, tuple)):
            stack.extend(item)
        elif isinstance(item, (int, float, str, bytes)):
            found = zlib.crc32(repr(item).encode(), found)
    return found


def together(hashes: Iterable[int]) -> int:
    """Return one hash of several, in their order."""
    return zlib.crc32(b"".join(struct.pack("<I", value) for value in hashes))


def of_random_state() -> int:
    """Return the hash of the state of torch's CPU generator."""
    return of_tensor(torch.get_rng_state(), limit=None)
