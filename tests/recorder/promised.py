# ruff: noqa: NPY002
"""A training for the promises of the recorder, and what the recorder might leave behind."""

from __future__ import annotations

import random
from pathlib import Path

import numpy  # its old global generator is what a recorder must leave alone
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402, N812
from tests.recorder.conftest import batch_of, loss_of, make_training  # noqa: E402

import trainscope  # noqa: E402

STEPS = 12


def train(scope_of=None, steps=STEPS, clip=True, **settings):
    """Train a little; return the weights, and what each generator draws next."""
    model, optimizer = make_training()
    torch.manual_seed(1)
    random.seed(1)
    numpy.random.seed(1)
    scope = scope_of(model, optimizer, **settings).attach() if scope_of is not None else None
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, batch_of(step))
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        if scope is not None:
            scope.step(loss, batch_index=step)
        optimizer.step()
    if scope is not None:
        scope.detach()
        assert scope.faults == {}
    weights = [p.detach().clone() for p in model.parameters()]
    return weights, (torch.rand(1).item(), random.random(), numpy.random.rand())


def same(first, second):
    return all(torch.equal(a, b) for a, b in zip(first[0], second[0], strict=True)) and first[1] == second[1]


PACKAGE = str(Path(trainscope.__file__).parent)


def traces(model):
    """List everything that a recorder might leave behind."""
    clip = torch.nn.utils.clip_grad
    wrapped = [
        f for f in (F.scaled_dot_product_attention, F.softmax, torch.softmax, clip._clip_grads_with_norm_,
                    torch.nn.utils.clip_grads_with_norm_)
        if hasattr(f, "__wrapped__") and getattr(f, "__code__", f.__init__).co_filename.startswith(PACKAGE)
    ]  # fmt: skip
    hooks = [
        hook
        for module in model.modules()
        for hooks in (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks)
        for hook in hooks.values()
    ]
    hooks += [h for p in model.parameters() for h in (p._backward_hooks or {}).values()]
    return wrapped + hooks
