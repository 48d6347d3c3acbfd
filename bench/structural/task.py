"""What the small trainings share: three kinds of data, models that can learn them, and settings that a seed draws."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

Batch = tuple[Tensor, Tensor]
STEPS = 48
"""Optimizer steps of a training."""
AT = 24
"""Step at which a fault strikes that is not there from the start."""


class Pictures(nn.Module):
    """A convolution with batch norm and dropout, for (n, 1, 8, 8) images."""

    def __init__(self, classes: int, dropout: float) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AvgPool2d(2))
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(128, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.drop(self.body(x).flatten(1)))


class Rows(nn.Module):
    """A perceptron with batch norm and dropout, for (n, 16) numbers."""

    def __init__(self, classes: int, dropout: float) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.GELU())
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(32, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.drop(self.body(x)))


class Text(nn.Module):
    """One causal attention layer, for (n, 16) tokens; one row of logits a token."""

    def __init__(self, classes: int, dropout: float) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(classes, 24), nn.Parameter(0.02 * torch.randn(16, 24))
        self.body = nn.TransformerEncoderLayer(24, 2, 48, dropout, batch_first=True, norm_first=True)
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(24, classes)
        nn.init.normal_(self.embed.weight, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        hidden = self.body(self.embed(x) + self.place[:length], src_mask=mask, is_causal=True)
        return self.head(self.drop(hidden)).flatten(0, 1)


@dataclass(frozen=True, slots=True)
class Task:
    """A model and its data."""

    seed: int
    kind: str
    """pictures, rows or text."""
    model: nn.Module
    data: TensorDataset
    held_out: Batch
    rows: int
    """Examples of a batch."""
    accumulate: int
    """Micro-batches of a step, where a training accumulates."""
    rate: float
    sgd: bool
    draw: random.Random
    """For what else a variant leaves to the seed."""
    shuffle: torch.Generator
    """Of all loaders: one that is made anew goes on where the last one was."""

    def optimizer(self) -> torch.optim.Optimizer:
        if self.sgd:
            return torch.optim.SGD(self.model.parameters(), lr=10 * self.rate, momentum=0.9)
        return torch.optim.AdamW(self.model.parameters(), lr=self.rate)

    def loader(self, rows: int = 0, **options: object) -> DataLoader[tuple[Tensor, ...]]:
        return DataLoader(self.data, rows or self.rows, **{"shuffle": True, "generator": self.shuffle, **options})

    def batches(self, **options: object) -> Iterator[Batch]:
        """Go through the data for ever."""
        loader = self.loader(**options)
        while True:
            yield from loader

    def loss(self, x: Tensor, y: Tensor, **options: object) -> Tensor:
        return functional.cross_entropy(self.model(x), y.flatten(), **options)

    def evaluate(self) -> float:
        """Return the loss of held-out data, and leave the model as it was."""
        before = self.model.training
        self.model.eval()
        with torch.no_grad():
            loss = self.loss(*self.held_out).item()
        self.model.train(before)
        return loss


def drawn(seed: int) -> Task:
    """Return a task with the kind of data, sizes, optimizer and learning rate that a seed draws."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    kind = ("pictures", "rows", "text")[seed % 3]
    classes, rows, accumulate = draw.choice((4, 6, 10)), draw.choice((8, 12, 16)), draw.choice((2, 3, 4))
    count = draw.choice((9, 13, 20)) * rows
    if kind == "text":
        # Each token mostly says which one follows it.
        follow = torch.randperm(classes)
        x = torch.randint(classes, (count + 64, 17))
        for place in range(1, 17):
            x[:, place] = torch.where(torch.rand(count + 64) < 0.8, follow[x[:, place - 1]], x[:, place])
        x, y = x[:, :-1].contiguous(), x[:, 1:].contiguous()
    else:
        shape = (1, 8, 8) if kind == "pictures" else (16,)
        y = torch.randint(classes, (count + 64,))
        x = torch.randn(classes, *shape)[y] + 1.5 * torch.randn(count + 64, *shape)
    made = {"pictures": Pictures, "rows": Rows, "text": Text}[kind]
    return Task(
        seed=seed,
        kind=kind,
        model=made(classes, draw.choice((0.1, 0.2))),
        data=TensorDataset(x[64:], y[64:]),
        held_out=(x[:64], y[:64]),
        rows=rows,
        accumulate=accumulate,
        rate=draw.choice((1e-3, 3e-3)),
        sgd=kind != "text" and draw.random() < 0.5,
        draw=draw,
        shuffle=torch.Generator().manual_seed(seed),
    )


def main(variants: Mapping[str, Callable[[Task], None]]) -> None:
    """Train as the command line says: ``script.py VARIANT --seed N``."""
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser()
    parser.add_argument("variant", choices=[*variants])
    parser.add_argument("--seed", type=int, default=0)
    # What a variant declares of its schedule it parses itself.
    chosen, _ = parser.parse_known_args(sys.argv[1:])
    variants[chosen.variant](drawn(chosen.seed))
