"""The small GPT of bench/diagnosis: plain, or with experts and a memory in place of the MLP."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

sys.path.append(str(Path(__file__).resolve().parents[1] / "bench" / "diagnosis"))

from model import GPT, TRAIN, WIDTH, Experts, Shape, windows

EXPERTS, SLOTS = 4, 16
BALANCE = 0.01
"""Weight of the load-balancing loss, as in the Switch transformer."""

Kind = Literal["plain", "routed"]

__all__ = ["TRAIN", "Kind", "gpt", "losses", "windows"]


class Routed(Experts):
    """Four experts, one a token, and beside them a bank of slots that is read with softmax addressing."""

    def __init__(self) -> None:
        super().__init__(EXPERTS)
        self.addressor = nn.Linear(WIDTH, SLOTS, bias=False)
        self.slots = nn.Parameter(0.1 * torch.randn(SLOTS, WIDTH))
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        """Return features of the shape of `x`, (batch, length, width)."""
        return super().forward(x) + self.addressor(x).softmax(-1) @ self.slots


def gpt(kind: Kind) -> GPT:
    """Return a fresh model; the plain one has 68,000 parameters."""
    model = GPT(Shape())
    if kind == "routed":
        for block in model.blocks:
            block.mlp = Routed()
    return model


def losses(model: GPT, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy and what is minimised: with experts, their balance is part of it."""
    loss = functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    return loss, loss + BALANCE * model.balance()
