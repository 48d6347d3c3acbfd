"""What the optimizer did to the weights and what it remembers, against slow and obvious arithmetic."""

import itertools

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from trainscope.detectors.optimizer_state import NEAR  # noqa: E402
from trainscope.probe import updates  # noqa: E402

from .models import backward, mlp  # noqa: E402

pytestmark = pytest.mark.slow


def test_the_update_of_a_step_is_what_its_optimizer_step_changed(attach, stats):
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    probe = attach(model, [optimizer])
    found, changes = [], []
    for seed in range(3):
        optimizer.zero_grad()
        backward(model, seed)
        found.append(probe.measure())
        before = [p.detach().clone() for p in model.parameters()]
        optimizer.step()
        changes.append([(p.detach() - b).norm().item() for p, b in zip(model.parameters(), before, strict=True)])
    probe.settle()
    for reading, change in zip(probe.read(found), changes, strict=True):
        for (name, p), want in zip(model.named_parameters(), change, strict=True):
            got = stats(reading, name)
            assert got["update_l2_norm"] == pytest.approx(want, rel=1e-4), name
            ratio = want / got["weight_l2_norm"] if got["weight_l2_norm"] else None  # a bias that is still 0
            assert got["update_ratio"] == (ratio if ratio is None else pytest.approx(ratio, rel=1e-4))
            assert p.shape


def test_a_large_update_is_estimated_within_five_percent(attach, stats):
    torch.manual_seed(0)
    model = nn.Linear(512, 384)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    probe = attach(model, [optimizer])
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(16, 512)).square().mean().backward()
        found = probe.measure()
        before = model.weight.detach().clone()
        optimizer.step()
    probe.settle()
    (reading,) = probe.read([found])
    want = (model.weight.detach() - before).norm().item()
    assert stats(reading, "weight")["update_l2_norm"] == pytest.approx(want, rel=0.05)


def test_adam_norms_and_rms_are_those_of_its_state(attach, stats):
    model = nn.Linear(30, 20)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.99))
    probe = attach(model, [optimizer], moments_every=1)
    for seed in range(4):
        optimizer.zero_grad()
        torch.manual_seed(seed)
        (model(torch.randn(5, 30)).square().mean() * (100 if seed == 3 else 1)).backward()
        found = probe.measure()
        if seed < 3:
            optimizer.step()
    (reading,) = probe.read([found])
    state, grad = optimizer.state[model.weight], model.weight.grad
    coming = 0.99 * state["exp_avg_sq"] + 0.01 * grad**2
    rms = (grad**2 / (coming / (1 - 0.99**4))).mean().sqrt()
    got = stats(reading, "weight")
    assert got["adam_m_norm"] == pytest.approx(state["exp_avg"].norm().item(), rel=1e-5)
    assert got["adam_v_norm"] == pytest.approx(state["exp_avg_sq"].norm().item(), rel=1e-5)
    assert got["rms_t"] == pytest.approx(rms.item(), rel=1e-4)
    assert got["rms_t"] > 1.5  # the gradient ran away from its history


def test_momentum_of_sgd_is_a_first_moment_and_there_is_no_second(attach, stats):
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    probe = attach(model, [optimizer], moments_every=1)
    for _ in range(2):
        model(torch.ones(1, 4)).sum().backward()
        found = probe.measure()
        optimizer.step()
    (reading,) = probe.read([found])
    assert stats(reading, "weight")["adam_m_norm"] > 0
    assert "adam_v_norm" not in reading.columns
    assert "optimizer_v_norm" not in reading.scalars


def test_learning_rates_of_every_group_and_optimizer_are_read(attach):
    model = mlp()
    first = torch.optim.SGD(
        [{"params": model[0].parameters(), "lr": 0.1}, {"params": model[2].parameters(), "lr": 0.2}]
    )
    second = torch.optim.AdamW(model[3].parameters(), lr=torch.tensor(0.25))
    probe = attach(model, [first, second])
    backward(model)
    (reading,) = probe.read([probe.measure()])
    rates = [reading.scalars[name] for name in ("lr", "lr_1", "lr_2")]
    assert rates == [0.1, 0.2, 0.25]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_weights_and_updates_are_of_now_whatever_their_layout(attach, stats, layout):
    torch.manual_seed(0)
    model = nn.Conv2d(64, 80, 3).to(memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    probe = attach(model, [optimizer])
    for _ in range(3):
        model(torch.randn(1, 64, 5, 5)).square().mean().backward()
        found = probe.measure()
        before = model.weight.detach().clone()
        optimizer.step()
    probe.settle()
    (reading,) = probe.read([found])
    got = stats(reading, "weight")
    assert got["weight_l2_norm"] == pytest.approx(before.norm().item(), rel=1e-6)
    assert got["weight_max"] == before.max().item()
    assert got["update_l2_norm"] == pytest.approx((model.weight - before).norm().item(), rel=0.2)


@pytest.mark.parametrize(("lost", "expected"), [(6, [1, 7, 12]), (7, [1, 6, 8, 13])])
def test_second_moments_are_measured_often_enough_that_a_lost_state_shows(attach, lost, expected):
    model = nn.Linear(30, 20)
    probe = attach(model, [torch.optim.Adam(model.parameters(), lr=1e-3)], activation_every=100)
    found = []
    for step in range(14):
        if step == lost:  # as a loop that builds its optimizer anew every epoch
            probe.settle()
            probe.read(found[-1:])
            probe.use([torch.optim.Adam(model.parameters(), lr=1e-3)])
        model.zero_grad()
        model(torch.ones(5, 30)).square().mean().backward()
        found.append(probe.measure())
        probe._optimizers[0].step()
    measured = [step for step, one in enumerate(found) if one.has.get("v")]
    assert measured == expected
    assert max(b - a for a, b in itertools.pairwise(measured)) <= NEAR  # what the detector compares


def test_changes_that_wait_are_those_that_are_worked_out_at_once(monkeypatch):
    def followed(most_waiting):
        monkeypatch.setattr(updates, "MOST_WAITING", most_waiting)
        torch.manual_seed(0)
        weights = [torch.randn(100, 100), torch.randn(7), torch.zeros(3, dtype=torch.float64)]
        kept = updates.Updates(weights, 1, torch.device("cpu"), torch.float64)
        kept.keep()
        found: list[dict[str, torch.Tensor]] = [{} for _ in range(40)]
        for step, vectors in enumerate(found):
            for weight in weights:
                weight += 0.01 * torch.randn(weight.shape)
            kept.later(vectors, keep=step < 39)
        kept.finish()
        return torch.stack([vectors["update"] for vectors in found])

    late, at_once = followed(1 << 20), followed(1)
    assert torch.equal(late, at_once)
    assert late[:, 1].mean().sqrt() == pytest.approx(0.01 * 7**0.5, rel=0.1)
    assert late[:, 2].min() > 0


def test_a_change_too_large_for_single_precision_is_squared_in_double():
    weight = torch.zeros(5000)
    kept = updates.Updates([weight], 1, torch.device("cpu"), torch.float64)
    kept.keep()
    weight += 1e30
    assert kept.squares(keep=False).sqrt().item() == pytest.approx(1e30 * 5000**0.5, rel=1e-5)
