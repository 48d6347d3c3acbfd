"""A small model, and one backward through it."""

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402


def mlp(width=16):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.LayerNorm(width), nn.Linear(width, 4))


def backward(model, seed=1, rows=32):
    torch.manual_seed(seed)
    model(torch.randn(rows, 8)).square().mean().backward()
