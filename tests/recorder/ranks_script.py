"""Small trainings, one after the other, on one rank or several: ``torchrun ranks_script.py RUN_DIR KIND ...``.

A kind is ddp, fsdp, stop (ddp, with a spike on one rank), first (ddp, recorded on the first rank only) or plain
(no process group).
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

from trainscope import StopTraining, TrainScope, TrainScopeConfig

STEPS = 6


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(10, 701), nn.Linear(701, 3)  # 701 rows do not divide by 2
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.first(x).relu()) * self.scale


def data(step: int) -> torch.Tensor:
    return torch.randn(16, 10, generator=torch.Generator().manual_seed(step))


def spread(kind: str, model: nn.Module, world: int) -> nn.Module:
    """Return what is called in place of the model."""
    if kind == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (world,))
        for part in (model.first, model.last):
            fully_shard(part, mesh=mesh)
        fully_shard(model, mesh=mesh)
    return nn.parallel.DistributedDataParallel(model) if kind in ("ddp", "stop", "first") else model


def train(kind: str, run_dir: str, rank: int = 0, world: int = 1) -> dict[str, object]:
    """Train with a recorder; return where its run is, where it stopped and what it could not do."""
    torch.manual_seed(0)
    model = Model()
    called = spread(kind, model, world)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    config = TrainScopeConfig(
        run_dir=run_dir,
        run_name=None if kind in ("ddp", "first") else kind,
        stop_on_spike=kind == "stop",
        histogram_every_n_steps=2,
    )
    scope = TrainScope(called, optimizer, config)
    records = kind != "first" or rank == 0
    path = scope.attach().session.path if records else None
    stopped = None
    try:
        for step in range(STEPS):
            optimizer.zero_grad()
            x = data(step).chunk(world)[rank]
            loss = called(x).square().mean()
            loss.backward()
            clip = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            del clip
            only_here = kind == "stop" and rank == 1 and step == 3
            if records:
                scope.step(float("nan") if only_here else loss.item(), batch_index=step)
            optimizer.step()
    except StopTraining as stop:
        stopped = stop.step
    scope.detach()
    return {"path": str(path), "stopped": stopped, "faults": dict(scope.faults)}


if __name__ == "__main__":
    folder, *kinds = sys.argv[1:]
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    mine = dist.get_rank()
    for each in kinds:
        result = train(each, folder, mine, dist.get_world_size())
        Path(folder, f"{each}_{mine}.json").write_text(json.dumps(result), encoding="utf-8")
    dist.destroy_process_group()
