"""Runs of the character model: one healthy, the others with one fault each."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from trainings.data import Data, text
from trainings.loop import HEALTHY, Faults, Log, Schedule, adamw, train, warmup_cosine
from trainings.model import CharacterModel

STEPS = 600
PEAK = 5e-3
ALL = range(1, STEPS + 1)
COSINE = warmup_cosine(PEAK, STEPS)
UNCLIPPED = float("inf")


def character_model(seed: int = 0, **size: int) -> CharacterModel:
    torch.manual_seed(seed)
    return CharacterModel(text().classes, **size)


def run(log: Log, faults: Faults = HEALTHY, schedule: Schedule = COSINE, **options) -> None:
    """Train a fresh character model for `STEPS` steps."""
    model = character_model()
    train(model, adamw(model), text(), schedule, log, steps=ALL, faults=faults, **options)


def healthy(log: Log) -> None:
    run(log)


def loss_spike(log: Log) -> None:
    """Feed three batches of random characters, as from a corrupted shard."""

    def batch(step: int, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if not 350 <= step <= 352:
            return x, y
        noise = torch.Generator().manual_seed(step)
        most = text().classes
        return torch.randint(most, x.shape, generator=noise), torch.randint(most, y.shape, generator=noise)

    run(log, Faults(batch=batch))


def unrecovered_spike(log: Log) -> None:
    """Multiply the learning rate of five steps by 60, and clip nothing."""
    burst = range(350, 355)
    run(log, schedule=lambda step: COSINE(step) * (60 if step in burst else 1), clip=UNCLIPPED)


def loss_shift(log: Log) -> None:
    """From step 350 on, get one target character in sixteen wrong."""

    def batch(step: int, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if step < 350:
            return x, y
        rng = np.random.default_rng(step)
        wrong = torch.from_numpy(rng.random(len(y)) < 1 / 16)
        other = torch.from_numpy(rng.integers(text().classes, size=len(y)))
        return x, torch.where(wrong, other, y)

    run(log, Faults(batch=batch))


def divergence(log: Log) -> None:
    """Invert the decay factor: from step 200 on the rate grows by 1.2 % a step instead of shrinking."""
    run(log, schedule=lambda step: COSINE(min(step, 200)) * 1.012 ** max(0, step - 200))


def half_precision(scale: Callable[[int], float]) -> Faults:
    """Pass gradients through float16 under a loss scale, as mixed-precision training does."""

    def backward(step: int, loss: Tensor, model: nn.Module) -> None:
        (loss * scale(step)).backward()
        for parameter in model.parameters():
            parameter.grad = parameter.grad.half().to(parameter.dtype) / scale(step)

    return Faults(backward=backward)


def nan(log: Log) -> None:
    """Double the loss scale every 30 steps and never look for an overflow."""
    run(log, half_precision(lambda step: 2.0 ** (7 + step // 30)))


def grad_vanishing(log: Log) -> None:
    """From step 250 on, halve the loss scale every fourth step until all gradients round to 0."""
    run(log, half_precision(lambda step: 2.0 ** (10 - max(0, step // 4 - 61))))


def grad_explosion(log: Log) -> None:
    """Scale the loss of three steps by 15, as a sum that should be a mean does, and clip nothing."""

    def backward(step: int, loss: Tensor, _model: nn.Module) -> None:
        (loss * (15 if 350 <= step <= 352 else 1)).backward()

    model = character_model()
    sgd = torch.optim.SGD(model.parameters(), momentum=0.9)
    rate = warmup_cosine(0.5, STEPS)
    train(model, sgd, text(), rate, log, steps=ALL, faults=Faults(backward=backward), clip=UNCLIPPED)


def lr_zero(log: Log) -> None:
    """Build the schedule for a third of the steps, as when it is stepped by each of three workers."""
    run(log, schedule=warmup_cosine(PEAK, STEPS // 3, floor=0.0))


def lr_jump(log: Log) -> None:
    """Resume at step 500 without the scheduler's state, at the peak of a new cosine."""
    cosine = warmup_cosine(2e-2, STEPS)
    run(log, schedule=lambda step: cosine(step) if step < 500 else cosine(step - 460))


def overfitting(log: Log) -> None:
    """Give eight thousand characters to a model with four times as many weights, without weight decay."""
    model = character_model(hidden=160)
    train(model, adamw(model, weight_decay=0), text(8000), COSINE, log, steps=ALL)


def eval_noise(log: Log) -> None:
    """Draw 8 characters anew for every evaluation instead of using all that are held out."""

    def eval_set(step: int, data: Data) -> tuple[Tensor, Tensor]:
        start = int(np.random.default_rng(step).integers(len(data.eval_y) - 8))
        return data.eval_x[start : start + 8], data.eval_y[start : start + 8]

    run(log, Faults(eval_set=eval_set), eval_every=15)


def leak(log: Log) -> None:
    """Slice the inputs off by one, so that the character to predict is the last of its own context."""

    def shifted(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return torch.cat([x[:, 1:], y[:, None]], dim=1), y

    faults = Faults(
        batch=lambda _step, x, y: shifted(x, y),
        eval_set=lambda _step, data: shifted(data.eval_x, data.eval_y),
    )
    model, rate = character_model(), warmup_cosine(2e-2, 1000, warmup=20)
    train(model, adamw(model), text(), rate, log, steps=range(1, 1001), faults=faults, eval_every=50)


def resumed(log: Log) -> None:
    """Die at step 420 and come back from the checkpoint of step 300, appending to the same log."""
    saved = {}

    def after(step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        if step == 300:
            saved.update(copy.deepcopy({"model": model.state_dict(), "optimizer": optimizer.state_dict()}))

    model = character_model()
    train(model, adamw(model), text(), COSINE, log, steps=range(1, 421), faults=Faults(after=after))
    model = character_model(seed=1)
    optimizer = adamw(model)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    train(model, optimizer, text(), COSINE, log, steps=range(301, STEPS + 1), seed=1)


def slow_down(log: Log) -> None:
    """From step 350 on, decompose all weights, gradients and moments, as a forgotten debugging aid does."""

    def after(step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        if step < 350:
            return
        for parameter in model.parameters():
            if parameter.dim() == 2:
                moments = optimizer.state[parameter]
                for matrix in (parameter.detach(), parameter.grad, moments["exp_avg"], moments["exp_avg_sq"]):
                    torch.linalg.svd(matrix)

    run(log, Faults(after=after), timed=True)
