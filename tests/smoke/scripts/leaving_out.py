"""Two epochs of a loader whose batches the script leaves out itself: ``draw`` never loads them, ``load`` drops them."""

import sys

from common import MLP, F, finish, loader, report, torch

from trainscope.replay import SkippingDataLoader

torch.manual_seed(0)
model = MLP()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
batches = SkippingDataLoader(loader(), [1, 2, 5, 7], load=sys.argv[1] == "load")
for _epoch in range(2):
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        report(loss)
finish(model)
