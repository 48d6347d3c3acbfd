"""Layers, groups and types that change while a model is recorded, and weights without numbers."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch")

from tests.recorder.conftest import columns  # noqa: E402
from torch import nn  # noqa: E402

from .odd import AT, STEPS, Net, batch, no_draws, same_numbers  # noqa: E402

pytestmark = pytest.mark.slow


def test_a_layer_that_takes_the_place_of_another_is_recorded_in_its_stead(scope_of):
    def act(model, optimizer):
        with no_draws():
            model.last = nn.Linear(16, 8)
            model.extra = nn.Linear(8, 8)
        optimizer.param_groups[0]["params"][:] = list(model.parameters())

    path = same_numbers(act, scope_of)
    found = columns(path / "layers" / "last.weight.arrow")
    assert None not in found["grad_l2_norm"]
    assert [i for i, std in enumerate(found["act_std"]) if std is None] == [AT]  # its first forward was before the step
    assert abs(found["weight_mean"][AT] - found["weight_mean"][AT - 1]) > 1e-4
    assert all(edges == found["hist_edges"][0] for edges in found["hist_edges"])
    assert columns(path / "layers" / "extra.weight.arrow")["step"] == list(range(AT, STEPS))


def test_a_parameter_group_added_in_the_middle_is_recorded_at_once(scope_of):
    def act(model, optimizer):
        model.late = nn.Linear(2, 2)
        optimizer.add_param_group({"params": list(model.late.parameters()), "lr": 0.5})

    def act_without_draws(model, optimizer):
        with no_draws():
            act(model, optimizer)

    path = same_numbers(act_without_draws, scope_of, settings={"histogram_every_n_steps": 1000})
    assert columns(path / "layers" / "late.weight.arrow")["step"] == list(range(AT, STEPS))
    assert columns(path / "global.arrow")["lr_1"] == [None] * AT + [0.5] * (STEPS - AT)


def test_weights_that_change_their_type_are_followed(scope_of):
    path = same_numbers(lambda model, _: model.double().float(), scope_of)
    norms = columns(path / "layers" / "first.weight.arrow")["weight_l2_norm"]
    assert all(abs(a - b) < 0.5 for a, b in itertools.pairwise(norms))


class Ghost(Net):
    """Has weights without numbers, as before they are loaded, beside whole, scalar, empty and integer ones."""

    def __init__(self) -> None:
        super().__init__()
        self.ghost = nn.Linear(4, 4, device="meta")
        self.scalar = nn.Parameter(torch.tensor(2.0))
        self.empty = nn.Parameter(torch.zeros(0, 8))
        self.places = nn.Parameter(torch.arange(3), requires_grad=False)

    def forward(self, x):
        return torch.cat([super().forward(x) * self.scalar, self.empty * 2])


def test_weights_without_numbers_are_left_out_and_the_others_measured(scope_of):
    def held(model):
        return torch.optim.SGD([p for p in model.parameters() if not p.is_meta and p.requires_grad], lr=0.1)

    torch.manual_seed(0)
    model = Ghost()
    optimizer = held(model)
    scope = scope_of(model, optimizer, activation_metrics_every_n_steps=1, histogram_every_n_steps=1).attach()
    path = scope.session.path
    for step in range(3):
        optimizer.zero_grad()
        loss = model(batch(step)).square().mean()
        loss.backward()
        scope.step(loss)
        optimizer.step()
    scope.detach()
    assert scope.faults == {}
    names = {file.stem for file in (path / "layers").iterdir()}
    assert {"scalar", "empty", "first.weight"} <= names
    assert not {"ghost.weight", "places"} & names
    assert columns(path / "layers" / "scalar.arrow")["weight_l2_norm"][0] == pytest.approx(2.0)
    empty = columns(path / "layers" / "empty.arrow")
    assert empty["weight_l2_norm"][0] == 0.0
    assert [empty[name][0] for name in ("weight_mean", "weight_min", "weight_max", "weight_max_abs")] == [None] * 4


class OnMeta(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8, device="meta")

    def forward(self, x):
        return self.layer(x.to("meta"))


def test_a_model_without_any_number_has_its_loss_recorded(scope_of):
    model = OnMeta()
    scope = scope_of(model, torch.optim.SGD(model.parameters(), lr=0.1)).attach()
    path = scope.session.path
    for step in range(3):
        model(batch(step))
        scope.step(float(step))
    scope.detach()
    assert scope.faults == {}
    assert columns(path / "global.arrow")["loss"] == [0.0, 1.0, 2.0]
