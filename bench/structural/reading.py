"""Trainings that read batches and do not learn from them; and loops that look like it."""

from __future__ import annotations

import itertools

import torch
from task import STEPS, Task, main


def learn(task: Task, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> None:
    optimizer.zero_grad()
    task.loss(x, y).backward()
    optimizer.step()


def outside_the_loop(task: Task) -> None:
    """The step is not in the loop over the batches: only the last of an epoch is learned from."""
    optimizer, loader = task.optimizer(), task.loader()
    for _ in range(STEPS // 2):
        for x, y in loader:
            batch = x, y
        learn(task, optimizer, *batch)


def outside_with_new_loaders(task: Task) -> None:
    """The same where each epoch has a loader of its own."""
    optimizer = task.optimizer()
    for _ in range(STEPS // 2):
        for x, y in task.loader():
            batch = x, y
        learn(task, optimizer, *batch)


def read_twice(task: Task) -> None:
    """One batch for the inputs, another for a line of the log."""
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(STEPS):
        shape = next(batches)[0].shape
        x, y = next(batches)
        assert x.dim() == len(shape)
        learn(task, optimizer, x, y)


def skipped_for_accumulated(task: Task) -> None:
    """A condition that was to hold back the step holds back the learning."""
    optimizer, loader, done = task.optimizer(), task.loader(), 0
    while done < STEPS:
        for i, (x, y) in enumerate(loader):
            if (i + 1) % task.accumulate:
                continue
            learn(task, optimizer, x, y)
            done += 1


def always_the_first(task: Task) -> None:
    """A new iterator at each step: the loader is asked for its first batch only."""
    optimizer, loader = task.optimizer(), task.loader(shuffle=False)
    for _ in range(STEPS):
        learn(task, optimizer, *next(iter(loader)))


def overwritten(task: Task) -> None:
    """A prefetcher that fetches once more when it is asked whether there is more."""
    optimizer, batches = task.optimizer(), task.batches()
    held = next(batches)
    for step in range(STEPS):
        if step % 3 == 0:
            held = next(batches)
        x, y = held
        held = next(batches)
        learn(task, optimizer, x, y)


def wrong_filter(task: Task) -> None:
    """A filter of long examples that has its sign the wrong way round: about half of the batches go."""
    optimizer, loader, done = task.optimizer(), task.loader(), 0
    while done < STEPS:
        for x, y in loader:
            if x.float().mean() < task.data.tensors[0].float().mean():
                continue
            learn(task, optimizer, x, y)
            done += 1


def each_once(task: Task) -> None:
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(STEPS):
        learn(task, optimizer, *next(batches))


def accumulated(task: Task) -> None:
    optimizer, loader, done = task.optimizer(), task.loader(), 0
    while done < STEPS:
        for i, (x, y) in enumerate(loader):
            (task.loss(x, y) / task.accumulate).backward()
            if (i + 1) % task.accumulate == 0 or i + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
                done += 1


def fetched_ahead(task: Task) -> None:
    """A prefetcher that is always one batch ahead, also when training ends."""
    optimizer, batches = task.optimizer(), task.batches()
    held = next(batches)
    for _ in range(STEPS):
        (x, y), held = held, next(batches)
        learn(task, optimizer, x, y)


def part_of_each_epoch(task: Task) -> None:
    """Only so many batches an epoch."""
    optimizer, loader, done = task.optimizer(), task.loader(), 0
    while done < STEPS:
        for x, y in itertools.islice(loader, 5):
            learn(task, optimizer, x, y)
            done += 1


def one_read_too_many(task: Task) -> None:
    """The same by a condition in the loop, after the batch was read: one in six is dropped."""
    optimizer, loader, done = task.optimizer(), task.loader(), 0
    while done < STEPS:
        for i, (x, y) in enumerate(loader):
            if i == 5:
                break
            learn(task, optimizer, x, y)
            done += 1


def resumed(task: Task) -> None:
    """Batches of an earlier run are read and dropped."""
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(12):
        next(batches)
    for _ in range(STEPS):
        learn(task, optimizer, *next(batches))


def evaluated(task: Task) -> None:
    """The same loader serves to measure the training loss every now and then."""
    optimizer, loader, done = task.optimizer(), task.loader(), 0
    while done < STEPS:
        for x, y in loader:
            learn(task, optimizer, x, y)
            done += 1
        task.model.eval()
        with torch.no_grad():
            for x, y in itertools.islice(loader, 4):
                task.loss(x, y)
        task.model.train()


def rare_filter(task: Task) -> None:
    """One batch in twenty is left out."""
    optimizer, loader, done = task.optimizer(), task.loader(), 0
    while done < STEPS:
        for x, y in loader:
            if task.draw.random() < 0.05:
                continue
            learn(task, optimizer, x, y)
            done += 1


def mixed(task: Task) -> None:
    """Every other batch is blended with the one before it."""
    optimizer, batches = task.optimizer(), task.batches(drop_last=True)
    for step in range(STEPS):
        x, y = next(batches)
        if step % 2 and x.is_floating_point():
            x = 0.9 * x + 0.1 * x[torch.randperm(len(x))]
        learn(task, optimizer, x, y)


if __name__ == "__main__":
    main({
        f.__name__: f
        for f in (
            outside_the_loop, outside_with_new_loaders, read_twice, skipped_for_accumulated, always_the_first,
            overwritten, wrong_filter, each_once, accumulated, fetched_ahead, part_of_each_epoch, one_read_too_many,
            resumed, evaluated, rare_filter, mixed,
        )
    })  # fmt: skip
