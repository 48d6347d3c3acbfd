"""A mixture of experts that counts its tokens: once, twice, or in evaluation too."""

import sys

from common import F, finish, loader, torch
from torch import nn


class Mixture(nn.Module):
    def __init__(self, width=16, experts=4, top_k=2):
        super().__init__()
        self.top_k = top_k
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, 4) for _ in range(experts))
        self.register_buffer("tokens_per_expert", torch.zeros(experts))

    def forward(self, x):
        weight, chosen = self.router(x).softmax(-1).topk(self.top_k)
        if self.training or sys.argv[1] == "evaluation":
            times = 2 if sys.argv[1] == "twice" else 1
            self.tokens_per_expert += times * torch.bincount(chosen.flatten(), minlength=len(self.experts))
        outputs = torch.stack([expert(x) for expert in self.experts], 1)
        return (outputs.gather(1, chosen.unsqueeze(-1).expand(-1, -1, 4)) * weight.unsqueeze(-1)).sum(1)


torch.manual_seed(0)
model = Mixture()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for x, y in loader(count=12):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    if sys.argv[1] == "cleared":
        model.tokens_per_expert.zero_()
    with torch.no_grad():
        model.eval()(x)
    model.train()
finish(model)
