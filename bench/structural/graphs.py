"""Trainings that keep their graphs; and some that keep numbers, or a few graphs for a while."""

from __future__ import annotations

import torch
from task import STEPS, Task, main
from torch import Tensor, nn
from torch.nn import functional


def steps(task: Task) -> object:
    """Yield batch and optimizer; the loop takes the step itself."""
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(STEPS):
        x, y = next(batches)
        optimizer.zero_grad()
        yield x, y
        optimizer.step()


def losses_kept(task: Task) -> None:
    history = []
    for x, y in steps(task):
        loss = task.loss(x, y)
        loss.backward()
        history.append(loss)


def sum_kept(task: Task) -> None:
    """A running mean for the log."""
    total: Tensor | float = 0.0
    for x, y in steps(task):
        loss = task.loss(x, y)
        loss.backward()
        total = total + loss


def outputs_kept(task: Task) -> None:
    """Logits for a figure at the end of training."""
    history = []
    for x, y in steps(task):
        logits = task.model(x)
        functional.cross_entropy(logits, y.flatten()).backward()
        history.append(logits)


def features_kept(task: Task) -> None:
    """What a hook sees of a module inside."""
    history = []
    task.model.head.register_forward_hook(lambda _module, inputs, _output: history.append(inputs[0].mean()))
    for x, y in steps(task):
        task.loss(x, y).backward()


def evaluations_kept(task: Task) -> None:
    """Evaluation with gradients on, its losses in a list."""
    history = []
    for number, (x, y) in enumerate(steps(task)):
        task.loss(x, y).backward()
        if number % 5 == 4:
            task.model.eval()
            history.append(task.loss(*task.held_out))
            task.model.train()


class Recurrent(nn.Module):
    """A cell with a state, and what it guesses."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(8, width), nn.Linear(width, 8)

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        state = self.cell(x, state)
        return self.head(state), state


def recurrent(task: Task, window: int, *, detach: bool) -> None:
    """Predict the next of a series, with the state of the batch before."""
    model = Recurrent(16)
    optimizer = torch.optim.SGD(model.parameters(), lr=task.rate)
    state, phase = torch.zeros(task.rows, 16), torch.rand(task.rows, 1)
    for step in range(STEPS):
        state = state.detach() if detach else state
        loss = torch.zeros(())
        for tick in range(window):
            place = phase + 0.3 * (step * window + tick) + torch.arange(8.0)
            guess, state = model(torch.sin(place), state)
            loss = loss + functional.mse_loss(guess, torch.sin(place + 0.3))
        optimizer.zero_grad()
        # Without in-place changes of weights in the graph's past there is no second backward: only the state is kept.
        torch.autograd.backward(loss / window, retain_graph=not detach, inputs=[*model.head.parameters()])
        optimizer.step()


def state_not_detached(task: Task) -> None:
    recurrent(task, 2, detach=False)


def state_detached(task: Task) -> None:
    recurrent(task, 5, detach=True)


def numbers_kept(task: Task) -> None:
    history, outputs = [], []
    for x, y in steps(task):
        logits = task.model(x)
        loss = functional.cross_entropy(logits, y.flatten())
        loss.backward()
        history.append(loss.item())
        outputs.append(logits.detach())


def sum_of_an_epoch(task: Task) -> None:
    """Losses of an epoch that end with it."""
    optimizer, done = task.optimizer(), 0
    while done < STEPS:
        total = torch.zeros(())
        for x, y in task.loader():
            optimizer.zero_grad()
            loss = task.loss(x, y)
            loss.backward()
            total += loss.detach()
            optimizer.step()
            done += 1
        total.item()


def last_few_kept(task: Task) -> None:
    """The losses of the last four steps, with their graphs."""
    held: list[Tensor] = []
    for x, y in steps(task):
        loss = task.loss(x, y)
        loss.backward()
        held = [*held[-3:], loss]


def two_losses(task: Task) -> None:
    """Two backwards through one graph."""
    for x, y in steps(task):
        logits = task.model(x)
        functional.cross_entropy(logits, y.flatten()).backward(retain_graph=True)
        (1e-3 * logits.square().mean()).backward()


def penalised(task: Task) -> None:
    """A penalty on the gradient, which needs a graph of the gradient."""
    for x, y in steps(task):
        logits = task.model(x)
        loss = functional.cross_entropy(logits, y.flatten())
        (slope,) = torch.autograd.grad(loss, [task.model.head.weight], create_graph=True)
        (loss + 0.01 * slope.square().sum()).backward()


def through_time(task: Task) -> None:
    """One backward for ten batches, whose graphs all live until then."""
    optimizer, batches = task.optimizer(), task.batches()
    for _ in range(STEPS // 4):
        optimizer.zero_grad()
        loss = sum(task.loss(*next(batches)) for _ in range(10)) / 10
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main({
        f.__name__: f
        for f in (
            losses_kept, sum_kept, outputs_kept, features_kept, evaluations_kept, state_not_detached, state_detached,
            numbers_kept, sum_of_an_epoch, last_few_kept, two_losses, penalised, through_time,
        )
    })  # fmt: skip
