"""Trainings that say how long they train and warm up, with a schedule that does not keep it; and some that do."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator

import torch
from task import STEPS, Task, main
from torch.optim import lr_scheduler

WARM = 12


def told(**defaults: int) -> argparse.Namespace:
    """Parse what is declared, such as ``--max-steps``, as a training script does."""
    parser = argparse.ArgumentParser()
    parser.add_argument("variant")
    parser.add_argument("--seed", type=int)
    for name, value in defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=value)
    return parser.parse_args(sys.argv[1:])


def warm_cosine(warmup_steps: int, total_steps: int) -> Callable[[int], float]:
    def factor(step: int) -> float:
        if step < warmup_steps:
            return step / max(1, warmup_steps)
        share = min(1.0, (step - warmup_steps) / max(1, total_steps - warmup_steps))
        return 0.5 * (1.0 + math.cos(math.pi * share))

    return factor


def train(task: Task, optimizer: torch.optim.Optimizer, *, accumulate: int = 1, steps: int = STEPS) -> Iterator[int]:
    """Yield the number of each step after it was taken."""
    batches = task.batches()
    for step in range(steps):
        optimizer.zero_grad()
        for _ in range(accumulate):
            (task.loss(*next(batches)) / accumulate).backward()
        optimizer.step()
        yield step


def counts_micro_batches(task: Task) -> None:
    """The length of the schedule is in batches of the loader, and it steps once a step."""
    options, optimizer = told(epochs=STEPS * task.accumulate // len(task.loader())), task.optimizer()
    batches = options.epochs * len(task.loader())
    scheduler = lr_scheduler.LambdaLR(optimizer, warm_cosine(WARM, batches))
    for _ in train(task, optimizer, accumulate=task.accumulate):
        scheduler.step()


def ends_early(task: Task) -> None:
    """The length is divided by the accumulation twice."""
    options, optimizer = told(max_steps=STEPS), task.optimizer()
    scheduler = lr_scheduler.CosineAnnealingLR(optimizer, options.max_steps // task.accumulate)
    for step in train(task, optimizer, accumulate=task.accumulate):
        if step < options.max_steps // task.accumulate:
            scheduler.step()


def longer_warm_up(task: Task) -> None:
    """Warm-up in micro-batches, where the scheduler counts steps."""
    options, optimizer = told(max_steps=STEPS, warmup_steps=WARM // 2), task.optimizer()
    scheduler = lr_scheduler.LambdaLR(optimizer, warm_cosine(options.warmup_steps * task.accumulate, options.max_steps))
    for _ in train(task, optimizer, accumulate=task.accumulate):
        scheduler.step()


def warm_up_lost(task: Task) -> None:
    """The wrapper that made the warm-up is gone."""
    options, optimizer = told(max_steps=STEPS, warmup_steps=WARM), task.optimizer()
    scheduler = lr_scheduler.CosineAnnealingLR(optimizer, options.max_steps)
    for _ in train(task, optimizer):
        scheduler.step()


def whole_division(task: Task) -> None:
    """A rate by hand that is 0 for all of the warm-up."""
    options, optimizer = told(max_steps=STEPS, warmup_steps=WARM), task.optimizer()
    peak = optimizer.param_groups[0]["lr"]
    optimizer.param_groups[0]["lr"] = 0.0
    for step in train(task, optimizer):
        factor = (step + 1) // options.warmup_steps if step + 1 < options.warmup_steps else 1.0 - step / STEPS
        optimizer.param_groups[0]["lr"] = peak * factor


def never_stepped(task: Task) -> None:
    options, optimizer = told(max_steps=STEPS), task.optimizer()
    scheduler = lr_scheduler.CosineAnnealingLR(optimizer, options.max_steps)
    for step in train(task, optimizer):
        if step % 20 == 0:
            scheduler.get_last_lr()


def overwritten(task: Task) -> None:
    """A line that sets the rate at each step, left over from an experiment."""
    options, optimizer = told(max_steps=STEPS, warmup_steps=WARM), task.optimizer()
    scheduler = lr_scheduler.LambdaLR(optimizer, warm_cosine(options.warmup_steps, options.max_steps))
    for _ in train(task, optimizer):
        scheduler.step()
        optimizer.param_groups[0]["lr"] = task.rate


def epochs_by_batches(task: Task) -> None:
    """A decay over the epochs that steps with every batch."""
    options, optimizer = told(epochs=STEPS // len(task.loader())), task.optimizer()
    scheduler = lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    for step in train(task, optimizer):
        if step < options.epochs:
            scheduler.step()


def half_by_hand(task: Task) -> None:
    """A rate by hand that is over when half of the steps are left."""
    options, optimizer = told(max_steps=STEPS), task.optimizer()
    peak = optimizer.param_groups[0]["lr"]
    for step in train(task, optimizer):
        share = min(1.0, 2.0 * (step + 1) / options.max_steps)
        optimizer.param_groups[0]["lr"] = peak * 0.5 * (1.0 + math.cos(math.pi * share))


def as_declared(task: Task) -> None:
    options, optimizer = told(max_steps=STEPS, warmup_steps=WARM), task.optimizer()
    scheduler = lr_scheduler.LambdaLR(optimizer, warm_cosine(options.warmup_steps, options.max_steps))
    for _ in train(task, optimizer, accumulate=task.accumulate):
        scheduler.step()


def by_epochs(task: Task) -> None:
    """A cosine over the epochs, stepped after each, with an odd number of batches for the accumulation."""
    length = len(task.loader())
    options, optimizer = told(epochs=max(2, STEPS // length)), task.optimizer()
    scheduler = lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    for step in train(task, optimizer):
        if (step + 1) % length == 0:
            scheduler.step()


def long_constant(task: Task) -> None:
    """Warm-up, a constant rate, and a decay over the last tenth."""
    options, optimizer = told(max_steps=STEPS, warmup_steps=WARM), task.optimizer()
    last = options.max_steps // 10

    def factor(step: int) -> float:
        return min(1.0, step / options.warmup_steps, max(0.0, (options.max_steps - step) / last))

    scheduler = lr_scheduler.LambdaLR(optimizer, factor)
    for _ in train(task, optimizer):
        scheduler.step()


def warm_restarts(task: Task) -> None:
    options, optimizer = told(max_steps=STEPS), task.optimizer()
    scheduler = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=options.max_steps // 4)
    for _ in train(task, optimizer):
        scheduler.step()


def constant(task: Task) -> None:
    options = told(max_steps=STEPS)
    for _ in train(task, task.optimizer(), steps=options.max_steps):
        pass


def to_a_floor(task: Task) -> None:
    """A cosine to a tenth of the peak over most of the steps, then that tenth."""
    options, optimizer = told(max_steps=STEPS, warmup_steps=WARM), task.optimizer()
    decay = warm_cosine(options.warmup_steps, int(0.9 * options.max_steps))
    scheduler = lr_scheduler.LambdaLR(
        optimizer, lambda n: decay(n) if n < options.warmup_steps else 0.1 + 0.9 * decay(n)
    )
    for _ in train(task, optimizer):
        scheduler.step()


def by_milestones(task: Task) -> None:
    options, optimizer = told(max_steps=STEPS), task.optimizer()
    scheduler = lr_scheduler.MultiStepLR(optimizer, [options.max_steps // 2, 3 * options.max_steps // 4], 0.3)
    for _ in train(task, optimizer):
        scheduler.step()


def cut_short(task: Task) -> None:
    """Made for ten times as many steps as are seen of it."""
    options, optimizer = told(max_steps=10 * STEPS, warmup_steps=2 * STEPS), task.optimizer()
    scheduler = lr_scheduler.LambdaLR(optimizer, warm_cosine(options.warmup_steps, options.max_steps))
    for _ in train(task, optimizer):
        scheduler.step()


def ends_with_the_loss(task: Task) -> None:
    """No schedule, but a rate that falls when the evaluation stops falling, with an upper bound on the steps."""
    options, optimizer = told(max_steps=STEPS, warmup_steps=0), task.optimizer()
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    for step in train(task, optimizer, steps=options.max_steps):
        if step % 5 == 4:
            scheduler.step(task.evaluate())


if __name__ == "__main__":
    main({
        f.__name__: f
        for f in (
            counts_micro_batches, ends_early, longer_warm_up, warm_up_lost, whole_division, never_stepped, overwritten,
            epochs_by_batches, half_by_hand, as_declared, by_epochs, long_constant, warm_restarts, constant, to_a_floor,
            by_milestones, cut_short, ends_with_the_loss,
        )
    })  # fmt: skip
