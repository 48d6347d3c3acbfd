"""Trainings in which a part of the model is in eval mode: by mistake, or on purpose."""

from __future__ import annotations

import copy

import torch
from task import AT, STEPS, Task, main
from torch import Tensor, nn
from torch.nn import functional


def train(task: Task, model: nn.Module | None = None, parameters: object = None) -> object:
    """Yield the number of each step before it is taken."""
    model = model or task.model
    batches, optimizer = task.batches(), torch.optim.AdamW(parameters or model.parameters(), lr=task.rate)
    for step in range(STEPS):
        yield step
        x, y = next(batches)
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y.flatten()).backward()
        optimizer.step()


def lost_after_evaluation(task: Task) -> None:
    for step in train(task):
        if step % 10 == 9:
            task.model.eval()
            with torch.no_grad():
                task.loss(*task.held_out)


def part_of_the_model(task: Task) -> None:
    """A function that looks at the features puts the body into eval mode and leaves it there."""
    for step in train(task):
        if step == AT:
            task.model.body.eval()


def never_in_train_mode(task: Task) -> None:
    """Loaded as for inference."""
    task.model.eval()
    for _ in train(task):
        pass


def frozen_norms(task: Task) -> None:
    """A helper of a detection model that is applied after the first epoch: norms and dropout stand still."""
    for step in train(task):
        if step == 12:
            for module in task.model.modules():
                if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d, nn.Dropout)):
                    module.eval()


def last_epoch_wins(task: Task) -> None:
    """``model.train(False)``, where the flag is whether this is the first epoch."""
    for step in train(task):
        task.model.train(step < 12)


def dropout_as_a_function(task: Task) -> None:
    """Lost after the first evaluation, in a model that has neither dropout modules nor batch norm."""
    classes = task.model.head.out_features

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(classes, 16) if task.kind == "text" else nn.Flatten()
            self.hidden = nn.LazyLinear(32)
            self.head = nn.Linear(32, classes)

        def forward(self, x: Tensor) -> Tensor:
            hidden = functional.dropout(torch.relu(self.hidden(self.embed(x))), 0.2, self.training)
            return self.head(hidden).flatten(0, -2)

    model = Plain()
    model(task.held_out[0])
    for step in train(task, model):
        if step % 10 == 9:
            model.eval()
            with torch.no_grad():
                model(task.held_out[0])


def restored(task: Task) -> None:
    for step in train(task):
        if step % 10 == 9:
            task.evaluate()


class Probe(nn.Module):
    """A linear head on a pretrained body that is frozen and in eval mode, as its recipe says."""

    def __init__(self, task: Task, *, dropout: bool, gradient: bool) -> None:
        super().__init__()
        self.body, self.gradient = task.model, gradient
        self.body.requires_grad_(False)
        classes = task.model.head.out_features
        last = nn.Linear(classes, classes)
        self.head = nn.Sequential(nn.Dropout(0.1), last) if dropout else last

    def train(self, mode: bool = True) -> Probe:
        super().train(mode)
        self.body.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        with torch.set_grad_enabled(self.gradient and torch.is_grad_enabled()):
            features = self.body(x)
        return self.head(features)


def probe(task: Task) -> None:
    model = Probe(task, dropout=True, gradient=True).train()
    for _ in train(task, model, [*model.head.parameters()]):
        pass


def probe_without_dropout(task: Task) -> None:
    model = Probe(task, dropout=False, gradient=task.draw.random() < 0.5).train()
    for _ in train(task, model, [*model.head.parameters()]):
        pass


def frozen_from_the_start(task: Task) -> None:
    """Batch norms keep the statistics of the checkpoint that is fine-tuned; dropout is on."""
    for step in train(task):
        if step == 0:
            task.model.body.eval()


def taught(task: Task) -> None:
    """A teacher in eval mode, without gradients, and a student with dropout."""
    teacher, batches = copy.deepcopy(task.model).eval(), task.batches()
    optimizer = task.optimizer()
    for _ in range(STEPS):
        x, y = next(batches)
        with torch.no_grad():
            aim = teacher(x).softmax(-1)
        optimizer.zero_grad()
        logits = task.model(x)
        soft = functional.kl_div(logits.log_softmax(-1), aim, reduction="batchmean")
        (functional.cross_entropy(logits, y.flatten()) + 0.1 * soft).backward()
        optimizer.step()


def judged_by_a_network(task: Task) -> None:
    """A generator without dropout that learns through a frozen network in eval mode, as a perceptual loss is."""
    judge = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 8))
    judge.eval().requires_grad_(False)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))
    optimizer = torch.optim.AdamW(model.parameters(), lr=task.rate)
    for _ in range(STEPS):
        aim, noise = torch.randn(task.rows, 16), torch.randn(task.rows, 8)
        optimizer.zero_grad()
        functional.mse_loss(judge(model(noise)), judge(aim)).backward()
        optimizer.step()


def looked_at(task: Task) -> None:
    """A fixed batch in eval mode, with gradients to see which inputs matter; then back to train mode."""
    x, y = task.held_out
    for step in train(task):
        if step % 10 == 9 and x.is_floating_point():
            task.model.eval()
            seen = x[:8].clone().requires_grad_()
            torch.autograd.grad(task.loss(seen, y[:8]), seen)
            task.model.train()


if __name__ == "__main__":
    main({
        f.__name__: f
        for f in (
            lost_after_evaluation, part_of_the_model, never_in_train_mode, frozen_norms, last_epoch_wins,
            dropout_as_a_function, restored, probe, probe_without_dropout, frozen_from_the_start, taught,
            judged_by_a_network, looked_at,
        )
    })  # fmt: skip
