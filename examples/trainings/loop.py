"""The training loop that every run shares, with the places where a fault can strike."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from trainings.data import Data

Row = dict[str, float]
"""One logged line: ``step`` and what was measured at it."""
Schedule = Callable[[int], float]
"""Step, counted from 1, to learning rate."""


class Log:
    """The lines a run logs, in the order in which it logs them."""

    def __init__(self, live: Callable[[Row], None] | None = None) -> None:
        self.rows: list[Row] = []
        self.live = live
        """Called with every row as it is logged."""

    def add(self, step: int, **values: float) -> None:
        """Log `values` with five digits."""
        row = {"step": step, **{name: float(f"{value:.5g}") for name, value in values.items()}}
        self.rows.append(row)
        if self.live is not None:
            self.live(row)


def warmup_cosine(peak: float, steps: int, warmup: int = 40, floor: float = 0.05) -> Schedule:
    """Rise linearly to `peak`, then fall along a half cosine to ``floor * peak`` at `steps`."""

    def rate(step: int) -> float:
        if step <= warmup:
            return peak * step / warmup
        done = min(1.0, (step - warmup) / (steps - warmup))
        return peak * (floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2)

    return rate


@dataclass(frozen=True, slots=True)
class Faults:
    """Where a fault can strike in a training step. As it stands: nowhere."""

    batch: Callable[[int, Tensor, Tensor], tuple[Tensor, Tensor]] = lambda _step, x, y: (x, y)
    """Step and batch to the batch that the model gets."""
    backward: Callable[[int, Tensor, nn.Module], None] = lambda _step, loss, _model: loss.backward()
    """Leaves the gradients of the loss in the parameters."""
    eval_set: Callable[[int, Data], tuple[Tensor, Tensor]] = lambda _step, data: (data.eval_x, data.eval_y)
    """Step to the held-out examples of its evaluation."""
    after: Callable[[int, nn.Module, torch.optim.Optimizer], None] = lambda _step, _model, _optimizer: None
    """What the loop does once the weights are updated."""


HEALTHY = Faults()


def adamw(model: nn.Module, *, weight_decay: float = 0.1) -> torch.optim.Optimizer:
    """Return the optimizer with the settings that language models are trained with."""
    return torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=weight_decay)


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: Data,
    schedule: Schedule,
    log: Log,
    *,
    steps: Iterable[int],
    faults: Faults = HEALTHY,
    clip: float = 1.0,
    eval_every: int = 25,
    seed: int = 0,
    timed: bool = False,
) -> None:
    """Train `model` and log loss, learning rate and gradient norm of every step.

    Parameters
    ----------
    clip : float
        Largest gradient norm; the log has the norm before clipping.
    eval_every : int
        Steps between evaluations, 0 for none.
    seed : int
        Of the batches only; the caller seeds the weights.
    timed : bool
        Whether to log seconds per step and examples per second too, which no two runs share.
    """
    rng = np.random.default_rng(seed)
    for step in steps:
        began = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = schedule(step)
        x, y = faults.batch(step, *data.batch(rng))
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        faults.backward(step, loss, model)
        norm = nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        faults.after(step, model, optimizer)
        took = time.perf_counter() - began
        speed = {"step_time": took, "tokens_per_second": len(y) / took} if timed else {}
        log.add(step, loss=loss.item(), learning_rate=schedule(step), grad_norm=norm.item(), **speed)
        if eval_every and step % eval_every == 0:
            log.add(step, eval_loss=_eval_loss(model, *faults.eval_set(step, data)))


@torch.no_grad()
def _eval_loss(model: nn.Module, x: Tensor, y: Tensor) -> float:
    return float(functional.cross_entropy(model(x), y))
