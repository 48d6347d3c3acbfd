import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn.utils import clip_grad_norm_  # noqa: E402  # imported before the probe is there, as scripts do

pytestmark = pytest.mark.slow


def setup(attach):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 900), nn.Linear(900, 4))
    probe = attach(model)
    model(torch.randn(4, 8)).square().sum().backward()
    return model, probe


def norms(model):
    return {name: p.grad.norm().item() for name, p in model.named_parameters()}


def total(values):
    return sum(v**2 for v in values.values()) ** 0.5


@pytest.mark.parametrize("early", [True, False])
def test_norms_from_before_and_after_clipping_are_both_true(attach, stats, early):
    model, probe = setup(attach)
    before = norms(model)
    if early:
        clip_grad_norm_(model.parameters(), 0.25)
    found = probe.measure()
    if not early:
        clip_grad_norm_(model.parameters(), 0.25)
    (reading,) = probe.read([found])
    assert reading.scalars["grad_norm_before_clip"] == pytest.approx(total(before), rel=1e-4)
    assert reading.scalars["grad_norm_after_clip"] == pytest.approx(0.25, rel=1e-4)
    for name, norm in before.items():
        assert stats(reading, name)["grad_l2_norm"] == pytest.approx(norm, rel=1e-4), name


@pytest.mark.parametrize("early", [True, False])
def test_clipping_by_value_is_seen_too(attach, stats, early):
    model, probe = setup(attach)
    before = norms(model)
    if early:
        nn.utils.clip_grad_value_(model.parameters(), 0.01)
    found = probe.measure()
    if not early:
        nn.utils.clip_grad_value_(model.parameters(), 0.01)
    after = norms(model)
    (reading,) = probe.read([found])
    assert total(after) < 0.5 * total(before)
    assert reading.scalars["grad_norm_before_clip"] == pytest.approx(total(before), rel=1e-4)
    assert reading.scalars["grad_norm_after_clip"] == pytest.approx(total(after), rel=1e-4)
    for name, norm in before.items():
        assert stats(reading, name)["grad_l2_norm"] == pytest.approx(norm, rel=1e-4), name


def test_an_infinite_gradient_is_found_where_it_was_before_clipping_spread_it(attach, stats):
    model, probe = setup(attach)
    model[0].weight.grad[0, 0] = torch.inf
    clip_grad_norm_(model.parameters(), 1.0)
    (reading,) = probe.read([probe.measure()])
    assert stats(reading, "0.weight")["grad_l2_norm"] == torch.inf
    assert stats(reading, "1.weight")["grad_l2_norm"] < 1e6


def test_clipping_a_part_leaves_the_rest_as_it_was(attach):
    model, probe = setup(attach)
    before = norms(model)
    clip_grad_norm_(model[0].parameters(), 0.1)
    (reading,) = probe.read([probe.measure()])
    rest = before["1.weight"] ** 2 + before["1.bias"] ** 2
    assert reading.scalars["grad_norm_before_clip"] == pytest.approx(total(before), rel=1e-4)
    assert reading.scalars["grad_norm_after_clip"] == pytest.approx((0.01 + rest) ** 0.5, rel=1e-4)


def test_a_gradient_written_after_clipping_is_measured_anew(attach):
    model, probe = setup(attach)
    clip_grad_norm_(model.parameters(), 0.1)
    model.zero_grad()
    model(torch.randn(4, 8)).square().sum().backward()
    after = norms(model)
    (reading,) = probe.read([probe.measure()])
    assert reading.scalars["grad_norm_before_clip"] == pytest.approx(total(after), rel=1e-4)
    assert reading.scalars["grad_norm_after_clip"] == reading.scalars["grad_norm_before_clip"]


def test_two_probes_hear_of_one_clipping_and_torch_is_put_back(attach):
    original = torch.nn.utils.clip_grad._clip_grads_with_norm_
    model, first = setup(attach)
    second = attach(model)
    assert torch.nn.utils.clip_grad._clip_grads_with_norm_ is not original
    clip_grad_norm_(model.parameters(), 0.5)
    for probe in (first, second):
        (reading,) = probe.read([probe.measure()])
        assert reading.scalars["grad_norm_after_clip"] == pytest.approx(0.5, rel=1e-4)
    first.detach()
    second.detach()
    assert torch.nn.utils.clip_grad._clip_grads_with_norm_ is original
