"""A loop of training steps that gives its loss to the recorder."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.recorder.conftest import batch_of, loss_of  # noqa: E402


def run(scope, model, optimizer, steps, *, loss_at=None, first=0):
    """Train through `scope`; return the spikes."""
    spikes = []
    for step in range(first, first + steps):
        optimizer.zero_grad()
        loss = loss_of(model, batch_of(step))
        loss.backward()
        value = loss.item() if loss_at is None else loss_at(step, loss.item())
        spikes.append(scope.step(value, batch_index=step))
        optimizer.step()
    return [spike for spike in spikes if spike is not None]
