"""One rank of a small training: ``torchrun ranks_script.py KIND RUN_DIR``, KIND ddp, fsdp, plain or stop."""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

from trainscope import StopTraining, TrainScope, TrainScopeConfig

kind, run_dir = sys.argv[1:]
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


rank, world = 0, 1
if kind != "plain":
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model: nn.Module = Model()
called = model
if kind in ("ddp", "stop"):
    called = nn.parallel.DistributedDataParallel(model)
if kind == "fsdp":
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (world,))
    for part in (model.first, model.last):
        fully_shard(part, mesh=mesh)
    fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
config = TrainScopeConfig(
    run_dir=run_dir,
    run_name=None if kind == "ddp" else kind,
    stop_on_spike=kind == "stop",
    histogram_every_n_steps=2,
)
scope = TrainScope(called, optimizer, config).attach()
path = scope.session.path
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
        scope.step(float("nan") if only_here else loss.item(), batch_index=step)
        optimizer.step()
except StopTraining as stop:
    stopped = stop.step
scope.detach()
result = {"path": str(path), "stopped": stopped, "faults": dict(scope.faults)}
Path(run_dir, f"{kind}_{rank}.json").write_text(json.dumps(result), encoding="utf-8")
if kind != "plain":
    dist.destroy_process_group()
