"""A training to which something happens in the middle, with the recorder and without it."""

from __future__ import annotations

import contextlib

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

STEPS, AT = 10, 5


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.relu, self.drop, self.last = nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.drop(self.relu(self.first(x))))


def batch(step):
    return torch.randn(4, 8, generator=torch.Generator().manual_seed(step))


def train(act, scope_of=None, *, make=Net, optimizer_of=None, **settings):
    """Train, and call ``act(model, optimizer)`` in the middle; return weights, losses, scope and folder."""
    torch.manual_seed(0)
    model = make()
    optimizer = (optimizer_of or (lambda m: torch.optim.AdamW(m.parameters(), lr=1e-2)))(model)
    scope = None
    if scope_of is not None:
        settings = {"activation_metrics_every_n_steps": 1, "histogram_every_n_steps": 1, **settings}
        scope = scope_of(model, optimizer, **settings).attach()
    path = None if scope is None else scope.session.path
    torch.manual_seed(1)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        if step == AT:
            act(model, optimizer)
        loss = model(batch(step)).square().mean()
        loss.backward()
        if scope is not None:
            scope.step(loss)
        optimizer.step()
        losses.append(loss.item())
    if scope is not None:
        scope.detach()
        assert scope.faults == {}
    return [p.detach().clone() for p in model.parameters()], losses, path


def same_numbers(act, scope_of, **arguments):
    """Train with and without the recorder, see that nothing differs, and return the run's folder."""
    settings = arguments.pop("settings", {})
    weights, losses, _ = train(act, **arguments)
    recorded, its_losses, path = train(act, scope_of, **arguments, **settings)
    assert losses == its_losses
    assert all(torch.equal(a, b) for a, b in zip(weights, recorded, strict=True))
    return path


@contextlib.contextmanager
def no_draws():
    with torch.random.fork_rng():
        yield
