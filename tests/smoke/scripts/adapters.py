"""Trains low-rank adapters beside frozen weights; the argument says what is wrong with them."""

from __future__ import annotations

import os
import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

WRONG = sys.argv[1]
WIDTH, RANK, WORDS = 24, 4, 30
ALPHA = 4e5 if WRONG == "alpha" else 8.0


class Adapted(nn.Module):
    """A frozen linear map plus alpha / r times B A, of which B begins at 0."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(WIDTH, WIDTH).requires_grad_(False)
        self.lora_A = nn.Linear(WIDTH, RANK, bias=False)
        self.lora_B = nn.Linear(RANK, WIDTH, bias=False)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.base(x) + ALPHA / RANK * self.lora_B(self.lora_A(x))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH).requires_grad_(False)
        self.blocks = nn.ModuleList(Adapted() for _ in range(2))
        self.head = nn.Linear(WIDTH, WORDS).requires_grad_(WRONG in {"decay", "checkpointing"})

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.embed(words)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=True) if WRONG == "checkpointing" else block(x)
        return self.head(x)


torch.manual_seed(0)
model = Model()
for name, parameter in model.named_parameters():
    if ("lora_B" in name and WRONG in {"frozen", "decay"}) or ("lora_A" in name and WRONG == "first_half"):
        parameter.requires_grad_(False)
trained = [
    p for name, p in model.named_parameters() if p.requires_grad and not ("lora_B" in name and WRONG == "left_out")
]
if WRONG == "alpha":
    optimizer: torch.optim.Optimizer = torch.optim.SGD(trained, lr=0.1)
else:
    optimizer = torch.optim.AdamW(trained, lr=3e-3, weight_decay=0.01 if WRONG == "decay" else 0.0)
for _ in range(int(os.environ.get("STEPS", "12"))):
    words = torch.randint(0, WORDS, (8, 6))
    loss = nn.functional.cross_entropy(model(words).flatten(0, 1), (words.flatten() * 7 + 3) % WORDS)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
