"""Optimizers that take turns unevenly, a second model, weights that join later, and saved tensors given out once."""

import torch
import torch.nn.functional as F  # noqa: N812
from common import MLP, STEPS, finish, loader, report

torch.manual_seed(0)
for _ in range(2):
    critic, player = MLP(), MLP()
    player.fc1.requires_grad_(requires_grad=False)
    first, second = (torch.optim.Adam(model.parameters(), lr=1e-2) for model in (critic, player))
    kept = {}

    def pack(tensor, kept=kept):
        kept[len(kept)] = tensor
        return len(kept) - 1

    def unpack(key, kept=kept):
        found, kept[key] = kept[key], None
        assert found is not None
        return found

    for step, (x, y) in enumerate(loader(STEPS)):
        for model, optimizer in ((critic, first), *([(player, second)] if step % 3 == 2 else [])):
            optimizer.zero_grad()
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                loss = F.cross_entropy(model(x), y, reduction="sum") / torch.tensor(8.0)
            loss.backward()
            optimizer.step()
        if step == STEPS // 2:
            player.fc1.requires_grad_(requires_grad=True)
        report(loss)
finish(critic, player)
