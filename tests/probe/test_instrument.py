"""What the probe reads off weights and gradients, against slow and obvious arithmetic."""

import math

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from .models import backward, mlp  # noqa: E402

pytestmark = pytest.mark.slow


def test_gradient_and_weight_statistics_are_those_of_the_tensors(attach, stats):
    model = mlp(width=700)
    probe = attach(model)
    backward(model)
    (reading,) = probe.read([probe.measure()])
    for name, p in model.named_parameters():
        got, grad, weight = stats(reading, name), p.grad.double(), p.detach().double()
        want = {
            "grad_l2_norm": grad.norm(),
            "grad_max_abs": grad.abs().max(),
            "grad_mean": grad.mean(),
            "grad_nan_inf_ratio": 0.0,
            "weight_l2_norm": weight.norm(),
            "weight_mean": weight.mean(),
            "weight_std": weight.std(),
            "weight_min": weight.min(),
            "weight_max": weight.max(),
            "weight_max_abs": weight.abs().max(),
        }
        for key, value in want.items():
            assert got[key] == pytest.approx(float(value), rel=1e-4, abs=1e-8), (name, key)
    total = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
    assert reading.scalars["grad_norm_before_clip"] == pytest.approx(total.item(), rel=1e-5)


def test_a_large_weight_near_a_constant_keeps_its_spread(attach, stats):
    model = nn.Linear(200, 200, bias=False)
    with torch.no_grad():
        model.weight.copy_(1 + 1e-3 * torch.randn(200, 200))
    probe = attach(model)
    model(torch.randn(2, 200)).sum().backward()
    (reading,) = probe.read([probe.measure()])
    assert stats(reading, "weight")["weight_std"] == pytest.approx(model.weight.std().item(), rel=1e-3)


def test_a_frozen_weight_has_no_gradient_rather_than_a_zero_one(attach, stats):
    model = mlp()
    model[0].weight.requires_grad_(False)
    probe = attach(model)
    backward(model)
    (reading,) = probe.read([probe.measure()])
    assert stats(reading, "0.weight")["grad_l2_norm"] is None
    assert stats(reading, "0.weight")["weight_l2_norm"] > 0
    assert stats(reading, "0.bias")["grad_l2_norm"] > 0


def test_a_tied_weight_is_one_layer_and_both_activations_are_kept(attach, stats):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(10, 6)
            self.head = nn.Linear(6, 10, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x):
            return self.head(self.embed(x))

    model = Tied()
    probe = attach(model)
    model(torch.arange(10)).sum().backward()
    (reading,) = probe.read([probe.measure()])
    assert reading.names == ("embed.weight", "head")
    assert stats(reading, "embed.weight")["act_mean"] is not None
    assert stats(reading, "head")["act_mean"] is not None
    assert stats(reading, "head")["weight_l2_norm"] is None


def test_a_bare_parameter_is_a_layer(attach, stats):
    class Bare(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(2.0))

        def forward(self, x):
            return x * self.scale

    model = Bare()
    probe = attach(model)
    model(torch.tensor(3.0)).backward()
    (reading,) = probe.read([probe.measure()])
    assert stats(reading, "scale")["grad_l2_norm"] == 3.0
    assert stats(reading, "scale")["weight_l2_norm"] == 2.0


def test_complex_parameters_and_sparse_gradients_are_measured(attach, stats):
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(20, 3, sparse=True)
            self.phase = nn.Parameter(torch.tensor([3 + 4j]))

        def forward(self, x):
            return self.embed(x).sum() * self.phase.abs().sum()

    model = Odd()
    probe = attach(model, [torch.optim.SparseAdam([model.embed.weight])])
    model(torch.tensor([1, 1, 2])).backward()
    (reading,) = probe.read([probe.measure()])
    assert stats(reading, "phase")["weight_l2_norm"] == pytest.approx(5)
    dense = model.embed.weight.grad.to_dense()
    assert stats(reading, "embed.weight")["grad_l2_norm"] == pytest.approx(dense.norm().item(), rel=1e-5)
    assert stats(reading, "embed.weight")["grad_mean"] == pytest.approx(dense.mean().item(), rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_weights_are_measured_in_single_precision(attach, stats, dtype):
    model = nn.Linear(80, 80, bias=False).to(dtype)
    probe = attach(model)
    model(torch.ones(1, 80, dtype=dtype)).sum().backward()
    (reading,) = probe.read([probe.measure()])
    got = stats(reading, "weight")
    assert got["weight_l2_norm"] == pytest.approx(model.weight.double().norm().item(), rel=1e-5)
    assert got["grad_l2_norm"] == pytest.approx(80.0, rel=1e-5)


def test_the_share_of_non_finite_gradients_is_counted_where_there_are_any(attach, stats):
    model = mlp()
    probe = attach(model)
    backward(model)
    model[0].weight.grad[0, :4] = math.nan
    model[3].bias.grad[0] = math.inf
    (reading,) = probe.read([probe.measure()])
    assert stats(reading, "0.weight")["grad_nan_inf_ratio"] == pytest.approx(4 / model[0].weight.numel())
    assert stats(reading, "3.bias")["grad_nan_inf_ratio"] == 0.25
    assert stats(reading, "3.weight")["grad_nan_inf_ratio"] == 0
    assert not math.isfinite(reading.scalars["grad_norm_before_clip"])


def test_untraced_steps_have_global_norms_and_no_layers(attach):
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    probe = attach(model, [optimizer], trace_every=2)
    found = []
    for seed in range(4):
        optimizer.zero_grad()
        backward(model, seed)
        found.append(probe.measure())
        optimizer.step()
    readings = probe.read(found)
    assert [bool(r.columns) for r in readings] == [True, False, True, False]
    assert all(r.scalars["grad_norm_before_clip"] > 0 for r in readings)
    assert "update_l2_norm" in readings[0].columns


def test_reading_many_steps_at_once_gives_what_reading_each_gives(attach):
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())
    probe = attach(model, [optimizer], activation_every=2)
    found = []
    for seed in range(5):
        optimizer.zero_grad()
        backward(model, seed)
        found.append(probe.measure())
        optimizer.step()
    together = probe.read(found)
    for one, alone in zip(together, (probe.read([f])[0] for f in found), strict=True):
        assert one.columns.keys() == alone.columns.keys()
        for name, column in one.columns.items():
            torch.testing.assert_close(column, alone.columns[name], rtol=0, atol=0, equal_nan=True)


def test_weights_that_are_replaced_are_followed(attach, stats):
    model = nn.Linear(100, 100)
    probe = attach(model)
    for value in (1.0, 2.0):
        model.weight.data = torch.full((100, 100), value)
        model.zero_grad()
        model(torch.ones(1, 100)).sum().backward()
        (reading,) = probe.read([probe.measure()])
        assert stats(reading, "weight")["weight_mean"] == pytest.approx(value)


@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_lazy_modules_are_listed_once_they_have_weights(attach):
    model = nn.Sequential(nn.LazyLinear(3))
    probe = attach(model)
    model(torch.ones(2, 5)).sum().backward()
    (reading,) = probe.read([probe.measure()])
    assert reading.names == ("0.weight", "0.bias")
