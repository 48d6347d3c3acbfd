"""Adds up what each rank knows about its part of a sharded parameter, so that a norm is the unsharded run's.

Sums and sums of squares are added, extremes maximised, over the mesh that shards the parameter: one ``all_reduce``
of each kind for a mesh dimension and step, whatever the number of parameters. A part that several ranks hold alike
(hybrid sharding) counts once. Every rank sends a table of the same shape, so that no rank waits for another that
measured less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from .tensors import is_sharded


@dataclass(slots=True, eq=False)
class _Mesh:
    mesh: Any
    places: list[int]
    weights: list[float]


class Shards:
    """Which parameters are sharded over which mesh; false where none is."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._meshes: list[_Mesh] = []
        for place, parameter in enumerate(parameters):
            if not is_sharded(parameter):
                continue
            mesh: Any = parameter.device_mesh  # type: ignore[attr-defined]
            copies = 1
            for dimension, placement in enumerate(parameter.placements):  # type: ignore[attr-defined]
                copies *= mesh.size(dimension) if placement.is_replicate() else 1
            known = next((m for m in self._meshes if m.mesh == mesh), None)
            if known is None:
                known = _Mesh(mesh, [], [])
                self._meshes.append(known)
            known.places.append(place)
            known.weights.append(1.0 / copies)

    def __bool__(self) -> bool:
        return bool(self._meshes)

    def add(self, sums: Tensor) -> None:
        """Replace the sharded columns of `sums` (rows, n) by their sum over the ranks."""
        for one in self._meshes:
            part = sums[:, one.places] * torch.tensor(one.weights, dtype=sums.dtype, device=sums.device)
            sums[:, one.places] = _over(one.mesh, part, dist.ReduceOp.SUM)

    def widest(self, highs: Tensor) -> None:
        """Replace the sharded columns of `highs` (rows, n) by their maximum over the ranks."""
        for one in self._meshes:
            highs[:, one.places] = _over(one.mesh, highs[:, one.places], dist.ReduceOp.MAX)


def _over(mesh: Any, table: Tensor, operation: Any) -> Tensor:
    table = table.contiguous()
    for dimension in range(mesh.ndim):
        dist.all_reduce(table, op=operation, group=mesh.get_group(dimension))
    return table
