"""Reads batches and trains on every one (all), on every other (half), or on those after the fourth (resume)."""

import sys

from common import MLP, F, finish, loader, torch

torch.manual_seed(0)
model = MLP()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for place, (x, y) in enumerate(loader(count=24)):
    if (sys.argv[1] == "half" and place % 2) or (sys.argv[1] == "resume" and place < 4):
        continue
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    if place % 6 == 5:
        for held, labels in loader(count=2, seed=3):  # an evaluation that forgot no_grad drops nothing
            F.cross_entropy(model.eval()(held), labels)
        model.train()
finish(model)
