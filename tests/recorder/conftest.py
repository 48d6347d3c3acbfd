"""A small training with dropout, and ways to look at what was recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from trainscope import TrainScope, TrainScopeConfig  # noqa: E402


class Net(nn.Module):
    """Embedding, one block with dropout, head."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.norm = nn.LayerNorm(16)
        self.mlp = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Dropout(0.2), nn.Linear(64, 16))
        self.head = nn.Linear(16, 20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.embed(x)
        return self.head(h + self.mlp(self.norm(h)))


def make_training() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batch_of(step: int) -> torch.Tensor:
    return torch.randint(20, (8, 6), generator=torch.Generator().manual_seed(step))


def loss_of(model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(model(batch).flatten(0, 1), batch.flatten())


def table(path: Path) -> pa.Table:
    with pa.ipc.open_stream(str(path)) as stream:
        return stream.read_all()


def columns(path: Path) -> dict[str, list]:
    return table(path).to_pydict()


@pytest.fixture
def training() -> tuple[nn.Module, torch.optim.Optimizer]:
    return make_training()


@pytest.fixture
def scope_of(tmp_path: Path) -> Callable[..., TrainScope]:
    """Make a recorder that writes below the test's folder."""

    def make(model, optimizer, **settings) -> TrainScope:
        settings = {"run_dir": str(tmp_path), "run_name": "run", **settings}
        return TrainScope(model, optimizer, TrainScopeConfig(**settings))

    return make
