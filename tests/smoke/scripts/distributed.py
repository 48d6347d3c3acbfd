import sys

import torch.distributed as dist
from common import MLP, F, finish, loader, report, torch
from torch.distributed.device_mesh import init_device_mesh

dist.init_process_group("gloo")
torch.manual_seed(0)
model = MLP()
if sys.argv[1] == "ddp":
    trained = torch.nn.parallel.DistributedDataParallel(model)
else:
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in (model.fc1, model.fc2):
        fully_shard(layer, mesh=mesh)
    trained = fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(trained.parameters(), lr=1e-2)
first = dist.get_rank() == 0
for x, y in loader(seed=dist.get_rank()):
    optimizer.zero_grad()
    loss = F.cross_entropy(trained(x), y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
    optimizer.step()
    if first:
        report(loss)
whole = {k: v.full_tensor() if hasattr(v, "full_tensor") else v for k, v in model.state_dict().items()}
if first:
    plain = MLP()
    plain.load_state_dict(whole)
    finish(plain)
dist.destroy_process_group()
