"""A loop without a DataLoader: batches by index, averaged weights, an optimizer made anew, losses by element."""

import copy
import sys

from common import MLP, STEPS, F, finish, report, torch

torch.manual_seed(0)
data, labels = torch.randn(60, 16), torch.randint(0, 4, (60,))
model = MLP()
average = copy.deepcopy(model)


def optimizer_of(model):
    groups = [[p for p in model.parameters() if (p.dim() > 1) is matrices] for matrices in (True, False)]
    return torch.optim.AdamW([{"params": groups[0], "weight_decay": 0.1}, {"params": groups[1], "weight_decay": 0.0}])


optimizer = optimizer_of(model)
for step in range(STEPS):
    if step == 3:
        state = optimizer.state_dict()
        optimizer = optimizer_of(model)
        optimizer.load_state_dict(state)
    chosen = torch.randperm(30)[:10]
    optimizer.zero_grad()
    loss = F.cross_entropy(model(data[chosen]), labels[chosen])
    loss.backward()
    optimizer.step()
    report(loss)
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
            slow.lerp_(fast, 0.1 if "average" in sys.argv else 0.0)
        average.eval()
        F.mse_loss(average(data[:8]), torch.zeros(8, 4), reduction="none")[:, :2].mean()
        F.mse_loss(average(data[:8]), torch.zeros(8, 4))
finish(model, average)
