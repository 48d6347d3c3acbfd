"""Trainings whose scheduler steps at the wrong pace; and some whose pace is unusual and right."""

from __future__ import annotations

import math

import torch
from task import STEPS, Task, main
from torch.optim import lr_scheduler


def accumulated(task: Task, optimizer: torch.optim.Optimizer, batches: object) -> None:
    optimizer.zero_grad()
    for _ in range(task.accumulate):
        (task.loss(*next(batches)) / task.accumulate).backward()
    optimizer.step()


def each_micro_batch(task: Task) -> None:
    optimizer, batches = task.optimizer(), task.batches()
    scheduler = lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(task.accumulate):
            (task.loss(*next(batches)) / task.accumulate).backward()
            scheduler.step()
        optimizer.step()


def outside_the_condition(task: Task) -> None:
    """The same in a loop over the loader: warm-up and decay by a function."""
    optimizer = task.optimizer()
    scheduler = lr_scheduler.LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / 12) * max(0.05, 1 - n / STEPS))
    done = 0
    while done < STEPS:
        for i, (x, y) in enumerate(task.loader(drop_last=True)):
            (task.loss(x, y) / task.accumulate).backward()
            if (i + 1) % task.accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()
                done += 1
            scheduler.step()


def called_twice(task: Task) -> None:
    """Once in the function that takes a step, and once in the loop."""
    optimizer, batches = task.optimizer(), task.batches()
    scheduler = lr_scheduler.LinearLR(optimizer, 1.0, 0.1, STEPS)

    def step() -> None:
        accumulated(task, optimizer, batches)
        scheduler.step()

    for _ in range(STEPS):
        step()
        scheduler.step()


def each_example(task: Task) -> None:
    """Once for each example of the batch."""
    optimizer = task.optimizer()
    scheduler, batches = lr_scheduler.ExponentialLR(optimizer, 0.98), task.batches()
    for _ in range(STEPS):
        x, y = next(batches)
        optimizer.zero_grad()
        task.loss(x, y).backward()
        optimizer.step()
        for _ in range(len(x)):
            scheduler.step()


def from_some_epoch_on(task: Task) -> None:
    """Accumulation that begins when warm-up is over, and a scheduler that knows nothing of it."""
    optimizer, batches = task.optimizer(), task.batches()
    scheduler = lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for step in range(STEPS):
        optimizer.zero_grad()
        for _ in range(task.accumulate if step >= 12 else 1):
            task.loss(*next(batches)).backward()
            scheduler.step()
        optimizer.step()


def each_step(task: Task) -> None:
    optimizer, batches = task.optimizer(), task.batches()
    scheduler = lr_scheduler.OneCycleLR(optimizer, task.rate * 3, total_steps=STEPS + 1)
    for _ in range(STEPS):
        accumulated(task, optimizer, batches)
        scheduler.step()


def restarts(task: Task) -> None:
    """A cosine with warm restarts, given fractions of an epoch."""
    optimizer, batches = task.optimizer(), task.batches()
    scheduler = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2, T_mult=2)
    for step in range(STEPS):
        accumulated(task, optimizer, batches)
        scheduler.step(step / 10)


def each_epoch(task: Task) -> None:
    optimizer = task.optimizer()
    scheduler, done = lr_scheduler.StepLR(optimizer, 2, 0.7), 0
    while done < STEPS:
        for x, y in task.loader():
            optimizer.zero_grad()
            task.loss(x, y).backward()
            optimizer.step()
            done += 1
        task.evaluate()
        scheduler.step()


def two_schedulers(task: Task) -> None:
    """A warm-up and a decay, both on one optimizer."""
    optimizer, batches = task.optimizer(), task.batches()
    schedulers = (lr_scheduler.LinearLR(optimizer, 0.1, 1.0, 10), lr_scheduler.ExponentialLR(optimizer, 0.99))
    for _ in range(STEPS):
        accumulated(task, optimizer, batches)
        for scheduler in schedulers:
            scheduler.step()


def one_after_the_other(task: Task) -> None:
    optimizer, batches = task.optimizer(), task.batches()
    warm, cold = lr_scheduler.LinearLR(optimizer, 0.1, 1.0, 12), lr_scheduler.CosineAnnealingLR(optimizer, STEPS - 12)
    scheduler = lr_scheduler.SequentialLR(optimizer, [warm, cold], [12])
    for _ in range(STEPS):
        accumulated(task, optimizer, batches)
        scheduler.step()


def on_evaluation(task: Task) -> None:
    optimizer, batches = task.optimizer(), task.batches()
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
    for step in range(STEPS):
        accumulated(task, optimizer, batches)
        if step % 10 == 9:
            scheduler.step(task.evaluate())


def two_optimizers(task: Task) -> None:
    """One for the head and one for the rest, each with its scheduler."""
    head = [*task.model.head.parameters()]
    rest = [p for p in task.model.parameters() if all(p is not other for other in head)]
    optimizers = [torch.optim.AdamW(part, lr=task.rate) for part in (head, rest)]
    schedulers = [lr_scheduler.CosineAnnealingLR(optimizer, STEPS) for optimizer in optimizers]
    batches = task.batches()
    for _ in range(STEPS):
        for optimizer in optimizers:
            optimizer.zero_grad()
        task.loss(*next(batches)).backward()
        for optimizer, scheduler in zip(optimizers, schedulers, strict=True):
            optimizer.step()
            scheduler.step()


def planned_in_micro_batches(task: Task) -> None:
    """A scheduler that counts micro-batches, with a length in micro-batches: the decay is as long as the training."""
    optimizer, batches = task.optimizer(), task.batches()
    total = STEPS * task.accumulate
    scheduler = lr_scheduler.LambdaLR(optimizer, lambda n: 0.5 * (1 + math.cos(math.pi * min(1.0, n / total))))
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(task.accumulate):
            (task.loss(*next(batches)) / task.accumulate).backward()
            scheduler.step()
        optimizer.step()


if __name__ == "__main__":
    main({
        f.__name__: f
        for f in (
            each_micro_batch, outside_the_condition, called_twice, each_example, from_some_epoch_on, each_step,
            restarts, each_epoch, two_schedulers, one_after_the_other, on_evaluation, two_optimizers,
            planned_in_micro_batches,
        )
    })  # fmt: skip
