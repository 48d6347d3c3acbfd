"""The one place where numbers leave the device.

Everything the probe computes stays where the tensors are, as short vectors. :func:`to_host` moves any number of
steps in one copy for each device; on the CPU there is nothing to move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

Vectors = Mapping[str, Tensor]


def to_host(bundles: Sequence[Vectors]) -> list[dict[str, Tensor]]:
    """Return `bundles` with every vector as 1-d float64 on the CPU.

    One device-to-host copy a device, however many steps and vectors there are.
    """
    moved: list[dict[str, Tensor]] = [{} for _ in bundles]
    waiting: dict[torch.device, list[tuple[int, str, Tensor]]] = {}
    for index, bundle in enumerate(bundles):
        for name, vector in bundle.items():
            if vector.device.type == "cpu":
                moved[index][name] = vector.reshape(-1).double()
            else:
                waiting.setdefault(vector.device, []).append((index, name, vector.reshape(-1)))
    for vectors in waiting.values():
        widest = torch.float64 if any(v.dtype == torch.float64 for _, _, v in vectors) else torch.float32
        host = torch.cat([v.to(widest) for _, _, v in vectors]).cpu().double()
        for (index, name, _), part in zip(vectors, host.split([v.numel() for _, _, v in vectors]), strict=True):
            moved[index][name] = part
    return moved
