"""Models and optimizers of other kinds: the training is the same, and what is recorded is right."""

from __future__ import annotations

import logging

import pytest

torch = pytest.importorskip("torch")

from tests.recorder.conftest import columns  # noqa: E402
from torch import nn  # noqa: E402

from .odd import STEPS, Net, same_numbers  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.mark.filterwarnings("ignore")
def test_a_model_in_torchscript_is_recorded_without_its_inside(scope_of):
    path = same_numbers(lambda *_: None, scope_of, make=lambda: torch.jit.script(Net()))
    assert len(columns(path / "layers" / "first.weight.arrow")["grad_l2_norm"]) == STEPS


class Bare:
    """An optimizer that somebody wrote: groups, no learning rate, no state."""

    def __init__(self, parameters):
        self.param_groups = [{"params": list(parameters)}]

    def zero_grad(self):
        for p in self.param_groups[0]["params"]:
            p.grad = None

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            p.sub_(p.grad, alpha=0.1)


def test_an_optimizer_without_state_is_recorded(scope_of):
    path = same_numbers(lambda *_: None, scope_of, optimizer_of=lambda model: Bare(model.parameters()))
    assert all(update > 0 for update in columns(path / "layers" / "last.weight.arrow")["update_l2_norm"])


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "Transformer", "weight_norm", "spectral_norm", "tied"])
def test_models_of_many_kinds_are_the_same_with_the_recorder(scope_of, kind):
    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            if kind in ("LSTM", "GRU"):
                self.inner = getattr(nn, kind)(8, 8, num_layers=2, dropout=0.1, bidirectional=True)
            elif kind == "Transformer":
                self.inner = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
            elif kind == "tied":
                self.inner = nn.Linear(8, 8)
                self.again = nn.ModuleList([self.inner, self.inner])
            else:
                self.inner = getattr(nn.utils.parametrizations, kind)(nn.Linear(8, 8))

        def forward(self, x):
            if kind == "Transformer":
                return self.inner(x.unsqueeze(0), x.unsqueeze(0))
            out = self.inner(x)
            return out[0] if isinstance(out, tuple) else self.again[1](out) if kind == "tied" else out

    path = same_numbers(lambda *_: None, scope_of, make=Wrapped)
    layers = [columns(file) for file in (path / "layers").iterdir()]
    assert any(value is not None for layer in layers for value in layer["act_std"])
    measured = [layer for layer in layers if layer["weight_l2_norm"][0] is not None]
    assert len(measured) == len(list(Wrapped().parameters()))


def test_a_step_number_that_goes_back_is_told_once(scope_of, training, caplog):
    scope = scope_of(*training).attach()
    path = scope.session.path
    with caplog.at_level(logging.WARNING, "trainscope"):
        for step in (0, 1, 2, 0, 1, 2, 0, 1):
            scope.step(1.0, step=step)
    scope.detach()
    assert [r.getMessage() for r in caplog.records] == [
        "step 0 comes after step 2: what was recorded from step 0 on is replaced "
        "(a step number must go on over the whole training)"
    ]
    assert columns(path / "global.arrow")["step"] == [0, 1]
