# ruff: noqa: T201
import torch._dynamo
from common import MLP, F, finish, loader, report, torch

torch.manual_seed(0)
model = MLP()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)


@torch.compile(backend="eager")
def loss_of(x, y):
    return F.cross_entropy(model(x), y)


for x, y in loader():
    optimizer.zero_grad()
    loss = loss_of(x, y)
    loss.backward()
    optimizer.step()
    report(loss)
counters = torch._dynamo.utils.counters
print("graphs", counters["stats"]["unique_graphs"], "breaks", len(counters["graph_break"]))
finish(model)
