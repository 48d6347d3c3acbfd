"""Trainings that begin with a loss that is too high; and some whose first loss is what it should be."""

from __future__ import annotations

import torch
from task import STEPS, Task, main
from torch import Tensor, nn
from torch.nn import functional


def train(task: Task, model: nn.Module | None = None, **options: object) -> None:
    model = model or task.model
    optimizer, batches = torch.optim.AdamW(model.parameters(), lr=task.rate), task.batches()
    for _ in range(STEPS):
        x, y = next(batches)
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y.flatten(), **options).backward()
        optimizer.step()


def deviation_1(task: Task) -> None:
    """Weights of the head, and of an embedding, from a normal distribution of deviation 1."""
    nn.init.normal_(task.model.head.weight)
    if task.kind == "text":
        nn.init.normal_(task.model.embed.weight)
    train(task)


class Wrapped(nn.Module):
    """A model whose logits are multiplied, and moved."""

    def __init__(self, body: nn.Module, gain: float, shift: float = 0.0) -> None:
        super().__init__()
        self.body, self.gain, self.shift = body, gain, shift

    def forward(self, x: Tensor) -> Tensor:
        return self.gain * self.body(x) + self.shift


def temperature_inverted(task: Task) -> None:
    """Logits over a temperature of 0.07, in a model whose logits are of the size of 1."""
    train(task, Wrapped(task.model, 1 / 0.07))


def wrong_prior(task: Task) -> None:
    """The bias of the head is meant for a rare first class, and the other classes are rare."""
    with torch.no_grad():
        task.model.head.bias[0] = 4.6
    train(task)


def raw_inputs(task: Task) -> None:
    """Inputs from 0 to 255 into a model without a norm at its door."""
    if task.kind == "text":
        raise SystemExit("tokens have no scale")
    inputs = task.data.tensors[0]
    low, high = inputs.min(), inputs.max()
    classes = task.model.head.out_features
    model = nn.Sequential(nn.Flatten(), nn.Linear(inputs[0].numel(), 32), nn.ReLU(), nn.Linear(32, classes))

    class Raw(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = model

        def forward(self, x: Tensor) -> Tensor:
            return self.body(255.0 * (x - low) / (high - low))

    train(task, Raw())


def summed(task: Task) -> None:
    """The loss is a sum, not a mean: the gradient is as many times too large as there are examples."""
    train(task, reduction="sum")


def labels_from_1(task: Task) -> None:
    """Labels that count from 1 for a head that counts from 0: the class before them is the one that is learned."""
    y = task.data.tensors[1]
    y.copy_((y + 1) % task.model.head.out_features)
    train(task)


def usual(task: Task) -> None:
    train(task)


def smoothed(task: Task) -> None:
    train(task, label_smoothing=0.1)


def weighted(task: Task) -> None:
    """Classes that count up to ten times as much as others."""
    classes = task.model.head.out_features
    train(task, weight=torch.linspace(0.2, 2.0, classes))


def other_head(task: Task) -> None:
    """A body that knows another task, with a new head for this one."""
    model, classes = task.model, task.model.head.out_features
    batches = task.batches()
    for _ in range(30):
        # Without the optimizer's step: what came before is another program's.
        x, y = next(batches)
        found = torch.autograd.grad(
            functional.cross_entropy(model(x), (y.flatten() + 1) % classes), [*model.parameters()]
        )
        with torch.no_grad():
            for parameter, gradient in zip(model.parameters(), found, strict=True):
                parameter.sub_(0.05 * gradient)
    model.head = nn.Linear(model.head.in_features, classes)
    train(task)


def many_classes(task: Task) -> None:
    """A vocabulary of thousands, of which the data uses some."""
    width = task.model.head.in_features
    task.model.head = nn.Linear(width, 5000)
    train(task)


def rare_classes(task: Task) -> None:
    """Nine examples in ten are of one class."""
    if task.kind != "text":
        y = task.data.tensors[1]
        y[torch.rand(len(y)) < 0.9] = 0
    train(task)


def padded(task: Task) -> None:
    """Labels that do not count."""
    y = task.data.tensors[1]
    y[torch.rand(y.shape) < 0.3] = -100
    train(task)


def normalised_logits(task: Task) -> None:
    """Cosines between features and classes, times 16, as in face recognition: no class is favoured."""
    classes, width = task.model.head.out_features, task.model.head.in_features

    class Cosine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out_features = classes
            self.weight = nn.Parameter(torch.randn(classes, width))

        def forward(self, x: Tensor) -> Tensor:
            return 16.0 * functional.linear(functional.normalize(x, dim=-1), functional.normalize(self.weight, dim=-1))

    task.model.head = Cosine()
    train(task)


if __name__ == "__main__":
    main({
        f.__name__: f
        for f in (
            deviation_1, temperature_inverted, wrong_prior, raw_inputs, summed, labels_from_1, usual, smoothed,
            weighted, other_head, many_classes, rare_classes, padded, normalised_logits,
        )
    })  # fmt: skip
