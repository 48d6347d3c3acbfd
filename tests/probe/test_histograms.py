import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

pytestmark = pytest.mark.slow


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(30, 40), nn.LayerNorm(40), nn.Linear(40, 2000))


def histograms(net, changes, attach):
    probe = attach(net)
    found = []
    for change in changes:
        with torch.no_grad():
            change(net)
        net.zero_grad()
        net(torch.randn(4, 30)).sum().backward()
        found.append(probe.measure())
    return [reading.histograms for reading in probe.read(found)]


def divergence(first, second):
    p, q = ((h + 1e-3) / (h + 1e-3).sum() for h in (first, second))
    return (p * (p / q).log()).sum().item()


def test_edges_never_move_and_counts_add_up(attach):
    net = model()
    found = histograms(net, [lambda _: None, lambda n: n[0].weight.mul_(3)], attach)
    assert torch.equal(found[0][1], found[1][1])
    numel = torch.tensor([float(p.numel()) for p in net.parameters()], dtype=torch.float64)
    for counts, _ in found:
        torch.testing.assert_close(counts.sum(1), numel, rtol=1e-6, atol=1e-6)


def test_a_divergence_between_two_steps_means_that_the_weights_moved(attach):
    changes = [
        lambda _: None,
        lambda _: None,
        lambda n: n[0].weight.mul_(100),
        lambda n: n[0].weight.mul_(0.01).add_(5),
    ]
    found = [counts[0] for counts, _ in histograms(model(), changes, attach)]
    assert divergence(found[0], found[1]) == 0
    assert divergence(found[0], found[2]) > 0.5
    assert divergence(found[0], found[3]) > 0.5


def test_what_starts_constant_has_room_on_both_sides(attach):
    counts, edges = histograms(model(), [lambda _: None], attach)[0]
    norm_scale = 2
    low, high = edges[norm_scale, 0].item(), edges[norm_scale, -1].item()
    assert low < 0.95
    assert high > 1.05
    assert counts[norm_scale].sum() == 40


def test_a_large_weight_is_counted_on_a_sample_within_a_point(attach):
    net = model()
    counts, edges = histograms(net, [lambda _: None], attach)[0]
    place = [name for name, _ in net.named_parameters()].index("2.weight")
    want = torch.histc(net[2].weight.detach(), 16, edges[place, 0].item(), edges[place, -1].item())
    assert ((counts[place] - want.double()).abs() / 80_000).max() < 0.01
