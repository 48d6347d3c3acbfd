"""Trainings in which a value stops being finite at a known step and place; and some in which infinities are meant."""

from __future__ import annotations

import math

import torch
from task import AT, STEPS, Task, main
from torch import Tensor, nn
from torch.nn import functional


class Wrapped(nn.Module):
    """The model with one more module before its loss."""

    def __init__(self, body: nn.Module, last: nn.Module) -> None:
        super().__init__()
        self.body, self.last = body, last

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.body(x))


def train(task: Task, model: nn.Module | None = None) -> object:
    """Yield step, loss and optimizer before the backward of each step; what is sent in is the loss to use."""
    model = model or task.model
    optimizer, batches = torch.optim.AdamW(model.parameters(), lr=task.rate), task.batches()
    for step in range(STEPS):
        x, y = next(batches)
        optimizer.zero_grad()
        logits = model(x)
        loss = functional.cross_entropy(logits, y.flatten())
        loss = (yield step, loss, logits, y.flatten()) or loss
        loss.backward()
        optimizer.step()


def each(task: Task, change: object, model: nn.Module | None = None) -> None:
    """Train with ``change(step, loss, logits, labels)`` as the loss."""
    steps = train(task, model)
    seen = next(steps)
    try:
        while True:
            seen = steps.send(change(*seen))
    except StopIteration:
        return


class Sharpened(nn.Module):
    """The logarithm of probabilities at a temperature that is lowered too far, so that some become 0."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.weight, self.heat = nn.Parameter(torch.ones(classes)), 1.0

    def forward(self, logits: Tensor) -> Tensor:
        return torch.log(torch.softmax(self.heat * self.weight * logits, -1))


def log_of_zero(task: Task) -> None:
    last = Sharpened(task.model.head.out_features)

    def change(step: int, *_: object) -> None:
        last.heat = 1e5 if step >= AT - 1 else 1.0

    each(task, change, Wrapped(task.model, last))


class Half(nn.Module):
    """A product in half precision, which ends at 65,504."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.gain, self.size = nn.Parameter(torch.ones(classes)), 1.0

    def forward(self, logits: Tensor) -> Tensor:
        grown = (logits * self.gain * self.size).half() * 32.0
        return grown.float() / (32.0 * self.size)


def half_precision(task: Task) -> None:
    last = Half(task.model.head.out_features)

    def change(step: int, *_: object) -> None:
        last.size = 1e5 if step >= AT - 1 else 1.0

    each(task, change, Wrapped(task.model, last))


def one_gradient(task: Task) -> None:
    """The gradient of one weight, as a faulty kernel would give it."""
    now = [0]
    task.model.head.weight.register_hook(lambda g: g / 0.0 if now[0] >= AT else g)

    def change(step: int, *_: object) -> None:
        now[0] = step

    each(task, change)


def distance_of_equals(task: Task) -> None:
    """The root of a distance that is 0: the loss is finite, its gradient is 0 times infinity."""

    def change(step: int, loss: Tensor, logits: Tensor, _labels: Tensor) -> Tensor:
        aim = logits.detach() + (1.0 if step < AT else 0.0)
        return loss + 0.01 * (logits - aim).square().sum().sqrt()

    each(task, change)


def input_not_a_number(task: Task) -> None:
    """One example of the data is NaN; of tokens, one row of the embedding."""
    if task.kind == "text":
        raise SystemExit("tokens are whole numbers")
    batch = torch.randint(len(task.data), ()).item()
    task.data.tensors[0][batch] = math.nan
    each(task, lambda *_: None)


def empty_mean(task: Task) -> None:
    """The mean over the examples that are hard enough, when there are none any more."""

    def change(step: int, _loss: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        every = functional.cross_entropy(logits, labels, reduction="none")
        chosen = every.detach() > (0.0 if step < AT else 1e3)
        return (every * chosen).sum() / chosen.sum()

    each(task, change)


class Attended(nn.Module):
    """Attention of the logits over each other with a mask that may leave nothing to look at."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.mix, self.blind = nn.Linear(classes, classes), False

    def forward(self, logits: Tensor) -> Tensor:
        score = logits @ self.mix(logits).T
        seen = torch.eye(len(score)).bool()
        seen[0, 0] = not self.blind
        return logits + 0.1 * torch.softmax(score.masked_fill(~seen, -math.inf), -1) @ logits


def nothing_to_attend(task: Task) -> None:
    last = Attended(task.model.head.out_features)

    def change(step: int, *_: object) -> None:
        last.blind = step >= AT - 1

    each(task, change, Wrapped(task.model, last))


def scale_refused(task: Task) -> None:
    """A gradient scaler that begins too high, and refuses its first steps."""
    optimizer, batches = task.optimizer(), task.batches()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    for _ in range(STEPS):
        optimizer.zero_grad()
        scaler.scale(task.loss(*next(batches))).backward()
        scaler.step(optimizer)
        scaler.update()


def classes_closed(task: Task) -> None:
    """Logits of classes that do not occur are minus infinity."""
    classes = task.model.head.out_features

    def change(_step: int, _loss: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        closed = torch.ones(classes).bool()
        closed[labels] = False
        return functional.cross_entropy(logits.masked_fill(closed, -math.inf), labels)

    each(task, change)


def guarded(task: Task) -> None:
    """Divisions by 0 whose result nobody takes."""

    def change(step: int, loss: Tensor, logits: Tensor, _labels: Tensor) -> Tensor:
        count = torch.zeros(len(logits)) if step >= AT else torch.ones(len(logits))
        weight = torch.where(count > 0, 1.0 / count, torch.ones(()))
        return loss + 1e-3 * (weight * logits.square().mean(-1)).mean()

    each(task, change)


def metric_not_a_number(task: Task) -> None:
    """A figure of the log that is 0 / 0, of which no gradient knows."""
    found = []

    def change(step: int, _loss: Tensor, logits: Tensor, labels: Tensor) -> None:
        rare = labels == (99 if step >= AT else 0)
        found.append(((logits.argmax(-1) == labels) & rare).sum().item() / rare.sum())

    each(task, change)


def left_out_by_hand(task: Task) -> None:
    """Batches whose loss is not finite are left out before their backward."""
    optimizer, batches = task.optimizer(), task.batches()
    for step in range(STEPS):
        loss = task.loss(*next(batches))
        if step and step % 15 == 0:
            loss = loss / 0.0
        if not torch.isfinite(loss):
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def skipped_by_hand(task: Task) -> None:
    """A scaler of one's own: no step is taken where the gradient is not finite."""
    optimizer, batches = task.optimizer(), task.batches()
    for step in range(STEPS):
        optimizer.zero_grad()
        scale = 1e39 if step and step % 15 == 0 else 1.0
        (task.loss(*next(batches)) * torch.tensor(scale)).backward()
        norm = nn.utils.get_total_norm([p.grad for p in task.model.parameters()])
        if torch.isfinite(norm):
            optimizer.step()


if __name__ == "__main__":
    main({
        f.__name__: f
        for f in (
            log_of_zero, half_precision, one_gradient, distance_of_equals, input_not_a_number, empty_mean,
            nothing_to_attend, scale_refused, classes_closed, guarded, metric_not_a_number, left_out_by_hand,
            skipped_by_hand,
        )
    })  # fmt: skip
