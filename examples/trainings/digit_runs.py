"""Runs of the digit model, cheap enough to regenerate in a test."""

from __future__ import annotations

import torch
from torch import nn

from trainings.data import digits
from trainings.loop import Faults, Log, adamw, train, warmup_cosine
from trainings.model import digit_model

STEPS = 600
ALL = range(1, STEPS + 1)


def healthy_digits(log: Log) -> None:
    torch.manual_seed(0)
    model = digit_model()
    train(model, adamw(model), digits(), warmup_cosine(2e-3, STEPS), log, steps=ALL)


def plateau(log: Log) -> None:
    """Start the hidden biases at -10, so that no unit is ever active and nothing reaches the output."""
    torch.manual_seed(0)
    model = digit_model()
    for layer in (model[0], model[2]):
        nn.init.constant_(layer.bias, -10.0)
    train(model, adamw(model), digits(), warmup_cosine(2e-3, STEPS), log, steps=ALL)


def oscillation(log: Log) -> None:
    """Go through the images sorted by digit, never shuffled: each digit is forgotten before it returns."""
    data = digits()
    order = torch.argsort(data.y, stable=True)
    batches = list(zip(data.x[order].split(64), data.y[order].split(64), strict=True))
    torch.manual_seed(0)
    model = digit_model()
    faults = Faults(batch=lambda step, _x, _y: batches[step % len(batches)])
    train(model, adamw(model), data, warmup_cosine(2e-3, 900), log, steps=range(1, 901), faults=faults)
