"""The two models: a character model over a short context, and a perceptron for digits.

Both compute in double precision: the last bits differ between processors and a log keeps five digits,
so the same seed writes the same log anywhere, as long as the training itself is stable.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trainings.data import CONTEXT


class CharacterModel(nn.Module):
    """Next character from the embeddings of the last `CONTEXT` (Bengio et al., JMLR 3, 2003)."""

    def __init__(self, classes: int, *, hidden: int = 96, embedding: int = 16) -> None:
        super().__init__()
        self.embed = nn.Embedding(classes, embedding)
        self.hidden = nn.Linear(CONTEXT * embedding, hidden)
        self.head = nn.Linear(hidden, classes)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (n, classes) for contexts (n, `CONTEXT`)."""
        return self.head(torch.relu(self.hidden(self.embed(x).flatten(1))))


def digit_model(activation: type[nn.Module] = nn.ReLU, *, hidden: int = 64) -> nn.Module:
    """Return a perceptron with two hidden layers."""
    layers = nn.Sequential(
        nn.Linear(64, hidden), activation(), nn.Linear(hidden, hidden), activation(), nn.Linear(hidden, 10)
    )
    return layers.double()
