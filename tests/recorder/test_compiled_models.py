"""Recording what ``torch.compile`` made: no graph more, and what is compiled stays unseen."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from tests.recorder.conftest import batch_of, columns, loss_of, make_training  # noqa: E402

pytestmark = pytest.mark.slow


class CountingBackend:
    """A ``torch.compile`` backend that counts graphs and runs them as they are."""

    def __init__(self):
        self.graphs = 0

    def __call__(self, graph, _inputs):
        self.graphs += 1
        return graph.forward


def compiled_training(scope_of, when):
    """Train a compiled model; return (graphs, losses, run folder)."""
    torch._dynamo.reset()
    backend = CountingBackend()
    model, optimizer = make_training()
    model.mlp[2].p = 0.0
    path = scope = None
    called = model
    if when in ("before", "never"):
        called = torch.compile(model, backend=backend)
    if when == "in_place":
        model.compile(backend=backend)
    if when != "never":
        scope = scope_of(called, optimizer, activation_metrics_every_n_steps=2, run_name=when).attach()
        path = scope.session.path
    if when == "after":
        called = torch.compile(model, backend=backend)
    losses = []
    for step in range(8):
        optimizer.zero_grad()
        loss = loss_of(called, batch_of(step))
        loss.backward()
        losses.append(loss.item())
        if scope is not None:
            scope.step(loss)
        optimizer.step()
    if scope is not None:
        scope.detach()
        assert scope.faults == {}
    return backend.graphs, losses, path


@pytest.mark.filterwarnings("ignore")
def test_compiling_before_or_after_attaching_adds_no_graph(scope_of):
    plain, losses, _ = compiled_training(scope_of, "never")
    assert plain == 1
    for when in ("before", "after", "in_place"):
        graphs, recorded, path = compiled_training(scope_of, when)
        assert (when, graphs) == (when, plain)
        assert recorded == losses
        found = columns(path / "global.arrow")
        assert all(norm > 0 for norm in found["grad_norm_before_clip"])
        assert "head.weight" in {p.stem for p in (path / "layers").iterdir()}


def test_a_compiled_block_leaves_the_rest_of_the_model_visible(scope_of):
    torch._dynamo.reset()
    model, optimizer = make_training()
    model.mlp.compile(backend=CountingBackend())
    scope = scope_of(model, optimizer, activation_metrics_every_n_steps=1).attach()
    path = scope.session.path
    for step in range(2):
        loss = loss_of(model, batch_of(step))
        loss.backward()
        scope.step(loss)
        optimizer.step()
    scope.detach()
    assert columns(path / "layers" / "head.weight.arrow")["act_std"][0] > 0
    assert columns(path / "layers" / "mlp.0.weight.arrow")["act_std"] == [None, None]
