"""Two epochs, the first of which is left early; with ``anew``, the data set and loader are made again for each."""

import sys

from common import MLP, F, finish, loader, report, torch

torch.manual_seed(0)
model = MLP()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
held_out = loader(2, seed=9)
batches = loader()
for epoch in range(2):
    if sys.argv[1:] == ["anew"] and epoch:
        batches = loader()
    for place, (x, y) in enumerate(batches):
        if place == 4 and not epoch and not sys.argv[1:]:
            break
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        report(loss)
    with torch.no_grad():
        for x, y in held_out:
            F.cross_entropy(model(x), y)
finish(model)
