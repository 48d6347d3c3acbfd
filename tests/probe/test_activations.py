import math

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

pytestmark = pytest.mark.slow


class Net(nn.Module):
    def __init__(self, *, again=None):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.act, self.last = nn.Linear(6, 300), nn.ReLU(), nn.Linear(300, 2)
        self.again = again

    def hidden(self, x):
        return self.act(self.first(x))

    def forward(self, x):
        h = self.hidden(x) if self.again is None else checkpoint(self.hidden, x, use_reentrant=self.again)
        return self.last(h)


def truth(values):
    v = values.detach().double().reshape(-1)
    centred = v - v.mean()
    return {
        "act_mean": v.mean().item(),
        "act_std": v.std().item(),
        "act_min": v.min().item(),
        "act_max": v.max().item(),
        "act_max_abs": v.abs().max().item(),
        "act_kurtosis": ((centred**4).mean() / (centred**2).mean() ** 2 - 3).item(),
    }


def close(got, want):
    for key, value in want.items():
        assert got[key] == pytest.approx(value, rel=2e-4, abs=2e-5), key


def batches(count=3, rows=100):
    torch.manual_seed(1)
    return [torch.randn(rows, 6) * (1 + i) + i for i in range(count)]


def test_statistics_are_those_of_the_output(attach, stats):
    net = Net()
    probe = attach(net)
    (x,) = batches(1)
    net(x).sum().backward()
    (reading,) = probe.read([probe.measure()])
    close(stats(reading, "first.weight"), truth(net.first(x)))
    close(stats(reading, "act"), truth(net.hidden(x)))
    assert stats(reading, "act")["act_median"] == pytest.approx(net.hidden(x).median().item(), abs=0.1)
    assert stats(reading, "first.bias")["act_mean"] is None


def test_gradient_accumulation_counts_every_micro_batch(attach, stats):
    net = Net()
    probe = attach(net)
    for _ in range(2):  # what the first sampled step taught must not matter
        for x in batches():
            net(x).sum().backward()
        (reading,) = probe.read([probe.measure()])
        close(stats(reading, "act"), truth(torch.cat([net.hidden(x) for x in batches()])))
        assert reading.scalars["micro_batches"] == 3
        net.zero_grad()


def test_a_loop_that_trains_for_long_without_telling_does_not_fill_the_memory(attach, stats, monkeypatch):
    monkeypatch.setattr("trainscope.probe.activations.MOST_FORWARDS", 2)
    net = Net()
    probe = attach(net)
    for x in batches():
        net(x).sum().backward()
    (reading,) = probe.read([probe.measure()])
    close(stats(reading, "act"), truth(torch.cat([net.hidden(x) for x in batches()[:2]])))
    assert reading.scalars["micro_batches"] == 3


def test_evaluation_forwards_do_not_count(attach, stats):
    net = Net()
    probe = attach(net)
    (x,) = batches(1)
    net(x).sum().backward()
    net.eval()
    with torch.no_grad():
        net(1e6 + x)
    net.train()
    with torch.no_grad():
        net(1e6 + x)
    with torch.inference_mode():
        net(1e6 + x)
    (reading,) = probe.read([probe.measure()])
    assert stats(reading, "act")["act_max"] < 1e3
    assert reading.scalars["micro_batches"] == 1


@pytest.mark.parametrize("reentrant", [True, False])
def test_activation_checkpointing_counts_once(attach, stats, reentrant):
    net = Net(again=reentrant)
    probe = attach(net)
    (x,) = batches(1)
    x.requires_grad_()
    net(x).sum().backward()
    (reading,) = probe.read([probe.measure()])
    close(stats(reading, "act"), truth(net.hidden(x)))


def test_hooks_are_there_only_during_sampled_steps(attach):
    net = Net()
    probe = attach(net, activation_every=3)
    hooked = []
    for _ in range(7):
        hooked.append(len(net.first._forward_hooks))
        net(batches(1)[0]).sum().backward()
        probe.measure()
    assert hooked == [1, 0, 0, 1, 0, 0, 1]


def test_the_filter_chooses_modules_by_name(attach, stats):
    net = Net()
    probe = attach(net, activation_filter=("las",))
    net(batches(1)[0]).sum().backward()
    (reading,) = probe.read([probe.measure()])
    assert stats(reading, "last.weight")["act_mean"] is not None
    assert stats(reading, "first.weight")["act_mean"] is None
    assert "act" not in reading.names


def test_units_that_never_answer_are_dead(attach, stats):
    net = Net()
    with torch.no_grad():
        net.first.weight[:75] = 0
        net.first.bias[:75] = -1
    probe = attach(net)
    for x in batches(2):
        net(x).sum().backward()
    (reading,) = probe.read([probe.measure()])
    alive = torch.cat([net.hidden(x) for x in batches(2)]).amax(0) > 0
    assert stats(reading, "act")["act_dead_fraction"] == pytest.approx(1 - alive.float().mean().item())
    assert stats(reading, "act")["act_dead_fraction"] >= 0.25
    assert stats(reading, "first.weight")["act_dead_fraction"] is None


def test_outliers_are_not_lost_in_a_sample(attach, stats):
    """One number in a thousand is an outlier, at a period that a strided sample meets always or never."""
    net = nn.Sequential(nn.Identity(), nn.Linear(1000, 1000, bias=False))
    with torch.no_grad():
        net[1].weight.copy_(torch.eye(1000))
    x = torch.randn(100, 1000)
    x[:, 7] *= 30
    probe = attach(net)
    net(x).sum().backward()
    (reading,) = probe.read([probe.measure()])
    got, want = stats(reading, "1.weight"), truth(x)
    assert got["act_max_abs"] == want["act_max_abs"]
    assert got["act_kurtosis"] == pytest.approx(want["act_kurtosis"], rel=0.1)


def test_extremes_are_of_all_numbers_and_the_rest_of_whole_examples(attach, stats):
    net = nn.Sequential(nn.Linear(4, 1000))
    torch.manual_seed(0)
    x = torch.randn(100, 4)
    x[97] = 50.0
    probe = attach(net)
    net(x).sum().backward()
    (reading,) = probe.read([probe.measure()])
    got, want = stats(reading, "0.weight"), truth(net(x)[::4])
    want.update({key: value for key, value in truth(net(x)).items() if key in ("act_min", "act_max", "act_max_abs")})
    close(got, want)


def test_the_median_is_of_all_columns(attach, stats):
    net = nn.Sequential(nn.Linear(1, 64))
    with torch.no_grad():
        net[0].weight.zero_()
        net[0].bias.copy_(torch.arange(64.0))
    probe = attach(net)
    net(torch.ones(256, 1)).sum().backward()
    (reading,) = probe.read([probe.measure()])
    assert stats(reading, "0.weight")["act_median"] == pytest.approx(31.5, abs=1)


def test_one_example_is_measured_whole_however_large(attach, stats):
    net = nn.Sequential(nn.Linear(4, 1000))
    torch.manual_seed(0)
    x = torch.randn(2, 300, 4)
    probe = attach(net)
    for _ in range(2):
        net(x).sum().backward()
        (reading,) = probe.read([probe.measure()])
        net.eval()
        want, every = truth(net(x)[:1]), truth(net(x))
        net.train()
        want.update({key: every[key] for key in ("act_min", "act_max", "act_max_abs")})
        close(stats(reading, "0.weight"), want)


def test_many_modules_of_one_size_keep_their_own_numbers(attach, stats):
    """More than are reduced together, and some are called twice."""
    torch.manual_seed(0)
    net = nn.Sequential(*(nn.Linear(6, 6) for _ in range(40)))
    probe = attach(net)
    for calls in (2, 2):
        x = torch.randn(20, 6)
        for turn in range(calls):
            net(x + turn).sum().backward()
        (reading,) = probe.read([probe.measure()])
        net.eval()
        for at in (0, 17, 39):
            want = torch.cat([net[: at + 1](x + turn) for turn in range(calls)])
            close(stats(reading, f"{at}.weight"), truth(want))
        net.train()
        net.zero_grad()


def test_activations_far_from_zero_keep_their_kurtosis(attach, stats):
    net = nn.Sequential(nn.Linear(50, 400))
    nn.init.constant_(net[0].bias, 500.0)
    probe = attach(net)
    torch.manual_seed(0)
    x = torch.randn(80, 50)
    net(x).sum().backward()
    (reading,) = probe.read([probe.measure()])
    got, want = stats(reading, "0.weight"), truth(net(x))
    assert got["act_kurtosis"] == pytest.approx(want["act_kurtosis"], abs=1e-3)


def test_nan_in_an_activation_shows(attach, stats):
    net = Net()
    probe = attach(net)
    x = batches(1)[0]
    x[3, 2] = math.nan
    net(x).sum().backward()
    (reading,) = probe.read([probe.measure()])
    assert math.isnan(stats(reading, "first.weight")["act_mean"])


def test_a_batch_kept_for_the_median_does_not_keep_the_activation_alive(attach):
    net = Net()
    probe = attach(net)
    net(batches(1, rows=5000)[0]).sum().backward()
    batches_kept = probe.forwards.activations._meter._batches.values()
    kept = sum(batch.copies.untyped_storage().nbytes() for batch in batches_kept)
    assert kept < 3 * 32 * 4 * 32_768
