"""Trainings of two processes that should hold the same weights and do not; and some that may differ."""

from __future__ import annotations

import contextlib

import torch
import torch.distributed as dist
from task import STEPS, Task, main
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def joined(task: Task, *, same: bool = False) -> object:
    """Join the group; yield batches of this rank's share of the data for ever, or of all of it."""
    rank = dist.get_rank()
    sampler = DistributedSampler(task.data, 1 if same else 2, 0 if same else rank, seed=task.seed)
    loader, epoch = DataLoader(task.data, task.rows, sampler=sampler, drop_last=True), 0
    while True:
        sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def optimizer_of(task: Task, model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=task.rate)


def averaged(model: nn.Module) -> None:
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad.div_(dist.get_world_size())


def train(task: Task, model: nn.Module, batches: object, steps: int = STEPS) -> None:
    optimizer = optimizer_of(task, model)
    for _ in range(steps):
        x, y = next(batches)
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y.flatten()).backward()
        optimizer.step()


def train_averaged(task: Task) -> None:
    """Train the bare model, with gradients that are averaged by hand."""
    batches, optimizer = joined(task), optimizer_of(task, task.model)
    for _ in range(STEPS):
        x, y = next(batches)
        optimizer.zero_grad()
        task.loss(x, y).backward()
        averaged(task.model)
        optimizer.step()


def other_seeds(task: Task) -> None:
    """Each rank initialises its own model, and gradients are averaged by hand."""
    torch.manual_seed(task.seed + 100 * dist.get_rank())
    for module in task.model.modules():
        if isinstance(module, (nn.Linear, nn.Conv2d, nn.Embedding)):
            module.reset_parameters()
    train_averaged(task)


def never_reduced(task: Task) -> None:
    """The wrapper is made and the bare model is trained."""
    DistributedDataParallel(task.model)
    train(task, task.model, joined(task))


class Tempered(nn.Module):
    """A loss with a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        return functional.cross_entropy(self.scale * logits, y.flatten())


def outside_the_wrapper(task: Task) -> None:
    """A parameter of the loss that is in the optimizer and not in the wrapper."""
    model, loss, batches = DistributedDataParallel(task.model), Tempered(), joined(task)
    optimizer = torch.optim.AdamW([*model.parameters(), *loss.parameters()], lr=task.rate)
    for _ in range(STEPS):
        x, y = next(batches)
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()


def accumulated(task: Task, *, last: int) -> None:
    model, batches = DistributedDataParallel(task.model), joined(task)
    optimizer = optimizer_of(task, model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        for micro in range(task.accumulate):
            x, y = next(batches)
            with contextlib.nullcontext() if micro == last % task.accumulate else model.no_sync():
                (functional.cross_entropy(model(x), y.flatten()) / task.accumulate).backward()
        optimizer.step()


def synchronised_too_early(task: Task) -> None:
    """The first micro-batch is synchronised, where it should be the last."""
    accumulated(task, last=0)


def same_batches(task: Task) -> None:
    """No sampler that splits the data, and one seed for all."""
    train(task, DistributedDataParallel(task.model), joined(task, same=True))


def other_rates(task: Task) -> None:
    """A scheduler that each rank drives by its own loss."""
    model, batches = DistributedDataParallel(task.model), joined(task)
    optimizer = optimizer_of(task, model)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=2)
    for _ in range(STEPS):
        x, y = next(batches)
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y.flatten())
        loss.backward()
        optimizer.step()
        scheduler.step(loss.item())


def buffers_apart(task: Task) -> None:
    """Running statistics of batch norms that nobody brings together: each rank evaluates another model."""
    if task.kind == "text":
        raise SystemExit("no batch norm")
    train(task, DistributedDataParallel(task.model, broadcast_buffers=False), joined(task))


def usual(task: Task) -> None:
    train(task, DistributedDataParallel(task.model), joined(task))


def synchronised_last(task: Task) -> None:
    accumulated(task, last=-1)


def averaged_by_hand(task: Task) -> None:
    """Weights sent by rank 0, gradients averaged by hand, statistics synchronised."""
    for value in task.model.state_dict().values():
        dist.broadcast(value, 0)
    train_averaged(task)


def partly_frozen(task: Task) -> None:
    task.model.body.requires_grad_(False)
    train(task, DistributedDataParallel(task.model), joined(task))


def evaluated_on_one(task: Task) -> None:
    """Only rank 0 evaluates, on the bare model."""
    model, batches = DistributedDataParallel(task.model), joined(task)
    optimizer = optimizer_of(task, model)
    for step in range(STEPS):
        x, y = next(batches)
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y.flatten()).backward()
        optimizer.step()
        if step % 20 == 19 and dist.get_rank() == 0:
            task.evaluate()


def local_steps(task: Task) -> None:
    """Ranks go their own way for eight steps, then their weights are averaged, as local SGD does on purpose."""
    batches, optimizer = joined(task), optimizer_of(task, task.model)
    for step in range(STEPS):
        x, y = next(batches)
        optimizer.zero_grad()
        task.loss(x, y).backward()
        optimizer.step()
        if step % 8 == 7:
            with torch.no_grad():
                for parameter in task.model.parameters():
                    dist.all_reduce(parameter)
                    parameter.div_(dist.get_world_size())


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    main({
        f.__name__: f
        for f in (
            other_seeds, never_reduced, outside_the_wrapper, synchronised_too_early, same_batches, other_rates,
            buffers_apart, usual, synchronised_last, averaged_by_hand, partly_frozen, evaluated_on_one, local_steps,
        )
    })  # fmt: skip
    dist.destroy_process_group()
