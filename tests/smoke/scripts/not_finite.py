"""A loss that is not finite from the fourth step on: in the loss itself, in a module, or in the input."""

import sys

from common import MLP, F, finish, loader, torch
from torch import nn


class Normalised(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 8), nn.Linear(8, 4)

    def forward(self, x):
        hidden = self.first(x)
        if broken == "half":
            return (self.second(hidden) * (1e6 if step > 2 else 1.0)).half().float()
        return self.second(hidden / (hidden.std() * (0.0 if broken == "model" and step > 2 else 1.0)))


broken, step = sys.argv[1], 0
torch.manual_seed(0)
model = Normalised() if broken in ("model", "half") else MLP(dropout=0.0)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step, (x, y) in enumerate(loader()):
    optimizer.zero_grad()
    logits = model(x * float("inf") if broken == "input" and step > 2 else x)
    if broken == "logarithm" and step > 2:
        loss = -(F.softmax(logits, -1) * (torch.arange(4) > 9)).sum(-1).log().mean()
    elif broken == "count" and step > 2:
        loss = F.cross_entropy(logits, y, reduction="sum") / (y > 9).sum()
    else:
        loss = F.cross_entropy(logits, y)
    loss.backward()
    optimizer.step()
finish(model)
