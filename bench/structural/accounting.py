"""Trainings that lose micro-batches, or step without a gradient; and unusual ones that do neither."""

from __future__ import annotations

import torch
from task import AT, STEPS, Task, main
from torch import nn


def without_backward(task: Task) -> None:
    """Batches with a small loss are not learned from, but the optimizer steps."""
    optimizer, batches, usual = task.optimizer(), task.batches(), 0.0
    for _ in range(STEPS):
        loss = task.loss(*next(batches))
        if loss.item() > 0.9 * usual:
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
        usual = 0.9 * usual + 0.1 * loss.item()


def stepped_twice(task: Task) -> None:
    """Once in the function that trains on a batch, and once in the loop."""
    optimizer, batches = task.optimizer(), task.batches()

    def learn() -> None:
        optimizer.zero_grad()
        task.loss(*next(batches)).backward()
        optimizer.step()

    for _ in range(STEPS // 2):
        learn()
        optimizer.step()


def counted_wrongly(task: Task) -> None:
    """The counter of micro-batches goes up only for batches that are kept, and the step is by the loop's own."""
    optimizer, batches, done, i = task.optimizer(), task.batches(), 0, 0
    while done < STEPS:
        x, y = next(batches)
        i += 1
        if task.draw.random() < 0.7:
            (task.loss(x, y) / (2 * task.accumulate)).backward()
        if i % (2 * task.accumulate) == 0:
            optimizer.step()
            optimizer.zero_grad()
            done += 1


def rest_of_the_epoch_lost(task: Task) -> None:
    """What an epoch leaves over is backpropagated and cleared when the next begins."""
    optimizer, done = task.optimizer(), 0
    while done < STEPS:
        optimizer.zero_grad()
        for i, (x, y) in enumerate(task.loader()):
            (task.loss(x, y) / task.accumulate).backward()
            if (i + 1) % task.accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()
                done += 1


def rest_of_the_epoch_added(task: Task) -> None:
    """What an epoch leaves over is added to the first step of the next."""
    optimizer, done = task.optimizer(), 0
    while done < STEPS:
        for i, (x, y) in enumerate(task.loader()):
            (task.loss(x, y) / task.accumulate).backward()
            if (i + 1) % task.accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()
                done += 1


def cleared_each_micro_batch(task: Task) -> None:
    """Only the last micro-batch counts."""
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(STEPS):
        for _ in range(task.accumulate):
            optimizer.zero_grad()
            (task.loss(*next(batches)) / task.accumulate).backward()
        optimizer.step()


def no_gradient_after_a_while(task: Task) -> None:
    """An early stop that ends the learning and not the loop."""
    optimizer, batches = task.optimizer(), task.batches()
    for step in range(STEPS):
        optimizer.zero_grad()
        if step < AT:
            task.loss(*next(batches)).backward()
        optimizer.step()


def short_last_window(task: Task) -> None:
    optimizer, done = task.optimizer(), 0
    while done < STEPS:
        loader = task.loader()
        for i, (x, y) in enumerate(loader):
            (task.loss(x, y) / task.accumulate).backward()
            if (i + 1) % task.accumulate == 0 or i + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
                done += 1


def two_backwards(task: Task) -> None:
    """A penalty with a backward of its own."""
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(STEPS):
        optimizer.zero_grad()
        task.loss(*next(batches)).backward()
        (1e-3 * sum(p.square().sum() for p in task.model.parameters())).backward()
        optimizer.step()


def sharpness(task: Task) -> None:
    """Sharpness-aware minimisation: climb, look again, step from where it was."""
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(STEPS):
        x, y = next(batches)
        optimizer.zero_grad()
        task.loss(x, y).backward()
        with torch.no_grad():
            norm = nn.utils.get_total_norm([p.grad for p in task.model.parameters()])
            moves = [0.05 * p.grad / norm for p in task.model.parameters()]
            for parameter, move in zip(task.model.parameters(), moves, strict=True):
                parameter.add_(move)
        optimizer.zero_grad()
        task.loss(x, y).backward()
        with torch.no_grad():
            for parameter, move in zip(task.model.parameters(), moves, strict=True):
                parameter.sub_(move)
        optimizer.step()


def by_closure(task: Task) -> None:
    """Quasi-Newton steps, each with as many backwards as its line search needs."""
    optimizer, batches = torch.optim.LBFGS(task.model.parameters(), lr=0.1, max_iter=4), task.batches(rows=64)
    for _ in range(STEPS // 2):
        x, y = next(batches)

        def closure(x: torch.Tensor = x, y: torch.Tensor = y) -> torch.Tensor:
            optimizer.zero_grad()
            loss = task.loss(x, y)
            loss.backward()
            return loss

        optimizer.step(closure)


def by_grad(task: Task) -> None:
    """Gradients that torch.autograd.grad gives."""
    optimizer, batches, parameters = task.optimizer(), task.batches(), [*task.model.parameters()]
    for _ in range(STEPS):
        found = torch.autograd.grad(task.loss(*next(batches)), parameters)
        for parameter, gradient in zip(parameters, found, strict=True):
            parameter.grad = gradient
        optimizer.step()


def growing(task: Task) -> None:
    """A batch that doubles twice in the course of training."""
    optimizer, batches = task.optimizer(), task.batches()
    for step in range(STEPS):
        count = 1 if step < 12 else 2 if step < 40 else 4
        optimizer.zero_grad()
        for _ in range(count):
            (task.loss(*next(batches)) / count).backward()
        optimizer.step()


def to_a_budget(task: Task) -> None:
    """As many micro-batches a step as fill a number of tokens; their lengths differ."""
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(STEPS):
        optimizer.zero_grad()
        left = 2 * task.rows
        while left > 0:
            x, y = next(batches)
            kept = min(left, task.draw.randint(2, len(x)))
            (task.loss(x[:kept], y[:kept]) * kept / (2 * task.rows)).backward()
            left -= kept
        optimizer.step()


if __name__ == "__main__":
    main({
        f.__name__: f
        for f in (
            without_backward, stepped_twice, counted_wrongly, rest_of_the_epoch_lost, rest_of_the_epoch_added,
            cleared_each_micro_batch, no_gradient_after_a_while, short_last_window, two_backwards, sharpness,
            by_closure, by_grad, growing, to_a_budget,
        )
    })  # fmt: skip
