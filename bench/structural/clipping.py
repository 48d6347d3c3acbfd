"""Trainings that clip gradients: in the wrong place, or of the wrong numbers; and in unusual ways that are right."""

from __future__ import annotations

import copy
import math

import torch
from task import STEPS, Task, main
from torch import nn

MOST = 0.05
"""Below every gradient norm of these trainings: the clipping has an effect at each step."""


def before_backward(task: Task) -> None:
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = task.loss(*next(batches))
        nn.utils.clip_grad_norm_(task.model.parameters(), MOST)
        loss.backward()
        optimizer.step()


def before_last_micro_batch(task: Task) -> None:
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(STEPS):
        optimizer.zero_grad()
        for micro in range(task.accumulate):
            if micro == task.accumulate - 1:
                nn.utils.clip_grad_norm_(task.model.parameters(), MOST)
            (task.loss(*next(batches)) / task.accumulate).backward()
        optimizer.step()


def after_step(task: Task) -> None:
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(STEPS):
        optimizer.zero_grad()
        task.loss(*next(batches)).backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(task.model.parameters(), MOST)


def still_scaled(task: Task) -> None:
    optimizer, batches = task.optimizer(), task.batches()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(STEPS):
        optimizer.zero_grad()
        scaler.scale(task.loss(*next(batches))).backward()
        nn.utils.clip_grad_norm_(task.model.parameters(), MOST)
        scaler.step(optimizer)
        scaler.update()


def of_a_copy(task: Task) -> None:
    """The gradients of the averaged weights, of which there are none."""
    average = copy.deepcopy(task.model)
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(STEPS):
        optimizer.zero_grad()
        task.loss(*next(batches)).backward()
        nn.utils.clip_grad_norm_(average.parameters(), MOST)
        optimizer.step()
        with torch.no_grad():
            for mean, now in zip(average.parameters(), task.model.parameters(), strict=True):
                mean.lerp_(now, 0.01)


def exhausted_list(task: Task) -> None:
    """A filter that the optimizer has used up already."""
    trained = filter(lambda p: p.requires_grad, task.model.parameters())
    optimizer, batches = torch.optim.AdamW(trained, lr=task.rate), task.batches()
    for _ in range(STEPS):
        optimizer.zero_grad()
        task.loss(*next(batches)).backward()
        nn.utils.clip_grad_norm_(trained, MOST)
        optimizer.step()


def head_only(task: Task) -> None:
    """What was the whole model is now only its head."""
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(STEPS):
        optimizer.zero_grad()
        task.loss(*next(batches)).backward()
        nn.utils.clip_grad_norm_(task.model.head.parameters(), MOST)
        optimizer.step()


def scaled_up_after(task: Task) -> None:
    """An average over micro-batches that is undone after clipping."""
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(task.accumulate):
            (task.loss(*next(batches)) / task.accumulate).backward()
        nn.utils.clip_grad_norm_(task.model.parameters(), MOST)
        for parameter in task.model.parameters():
            parameter.grad.mul_(task.accumulate)
        optimizer.step()


def usual(task: Task) -> None:
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(STEPS):
        optimizer.zero_grad()
        task.loss(*next(batches)).backward()
        nn.utils.clip_grad_norm_(task.model.parameters(), MOST)
        optimizer.step()


def unscaled(task: Task) -> None:
    optimizer, batches = task.optimizer(), task.batches()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(task.accumulate):
            scaler.scale(task.loss(*next(batches)) / task.accumulate).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(task.model.parameters(), MOST)
        scaler.step(optimizer)
        scaler.update()


def by_part(task: Task) -> None:
    """Two limits, one for the head and one for the rest."""
    head = [*task.model.head.parameters()]
    rest = [p for p in task.model.parameters() if all(p is not other for other in head)]
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(STEPS):
        optimizer.zero_grad()
        task.loss(*next(batches)).backward()
        nn.utils.clip_grad_norm_(rest, MOST)
        nn.utils.clip_grad_norm_(head, 2 * MOST)
        optimizer.step()


def each_micro_batch(task: Task) -> None:
    """What a micro-batch adds is not limited by itself, what the step gets is."""
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(task.accumulate):
            (task.loss(*next(batches)) / task.accumulate).backward()
            nn.utils.clip_grad_norm_(task.model.parameters(), MOST)
        optimizer.step()


def only_to_log(task: Task) -> None:
    """An infinite limit, to have the norm; and noise on the gradient after it."""
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(STEPS):
        optimizer.zero_grad()
        task.loss(*next(batches)).backward()
        nn.utils.clip_grad_norm_(task.model.parameters(), math.inf)
        for parameter in task.model.parameters():
            parameter.grad.add_(1e-3 * torch.randn_like(parameter.grad))
        optimizer.step()


def by_value(task: Task) -> None:
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(STEPS):
        optimizer.zero_grad()
        task.loss(*next(batches)).backward()
        nn.utils.clip_grad_value_(task.model.parameters(), 0.01)
        optimizer.step()


if __name__ == "__main__":
    main({
        f.__name__: f
        for f in (
            before_backward, before_last_micro_batch, after_step, still_scaled, of_a_copy, exhausted_list, head_only,
            scaled_up_after, usual, unscaled, by_part, each_micro_batch, only_to_log, by_value,
        )
    })  # fmt: skip
