"""A resumed run goes on as if it had never stopped: step ids, histogram edges, what the detectors know."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from tests.recorder.conftest import batch_of, columns, loss_of, make_training  # noqa: E402

from trainscope.core.config import TrainScopeConfig  # noqa: E402
from trainscope.probe import Boundary  # noqa: E402
from trainscope.recorder.live import REFILL, Live  # noqa: E402

pytestmark = pytest.mark.slow


def healthy(step: int) -> float:
    """Loss with noise of 0.05 around 2, the same at every call."""
    return 2.0 + 0.05 * torch.randn(1, generator=torch.Generator().manual_seed(step)).item()


def judge(scope_of, losses, **settings):
    """Show losses to a fresh recorder; return its spikes and the run's folder."""
    model, optimizer = make_training()
    scope = scope_of(model, optimizer, resume=True, trace_every_n_steps=10_000, **settings).attach()
    path = scope.session.path
    spikes = []
    for step, loss in losses:
        spike = scope.step(loss, step=step)
        spikes += [] if spike is None else [spike["step"]]
    scope.detach()
    assert scope.faults == {}
    return spikes, path


def test_the_detector_is_not_blind_after_a_resume(scope_of):
    judge(scope_of, [(s, healthy(s)) for s in range(250)])
    after = {s: healthy(s) for s in range(250, 270)}
    after[253] = 2.7  # 14 sigma, but no leap beyond everything that a detector in its warm-up would see
    assert judge(scope_of, after.items())[0] == [253]


def test_a_loss_that_comes_back_higher_is_an_alarm_and_one_that_goes_on_is_not(scope_of):
    judge(scope_of, [(s, healthy(s)) for s in range(250)])
    assert judge(scope_of, [(s, healthy(s)) for s in range(250, 300)])[0] == []
    spikes, _ = judge(scope_of, [(s, healthy(s) + 0.3) for s in range(300, 330)])
    assert len(spikes) == 1
    assert spikes[0] < 310


def test_after_a_rewind_the_detector_knows_the_steps_before_it_and_no_later_ones(scope_of):
    _, path = judge(scope_of, [(s, healthy(s) if s < 200 else 50.0) for s in range(230)])
    again = {s: healthy(s) for s in range(150, 180)}
    again[160] = 2.7
    spikes, _ = judge(scope_of, again.items())
    assert spikes == [160]  # with the 50s in its memory it would not be one
    found = columns(path / "global.arrow")
    assert found["step"] == list(range(180))
    assert max(found["loss"]) == 2.7


def test_a_resume_without_step_numbers_counts_on_from_the_last_recorded_one(scope_of):
    judge(scope_of, [(None, healthy(s)) for s in range(30)])
    _, path = judge(scope_of, [(None, healthy(s)) for s in range(30, 45)])
    assert columns(path / "global.arrow")["step"] == list(range(45))


def test_a_loss_that_is_still_not_finite_after_a_resume_is_news(scope_of):
    judge(scope_of, [(s, healthy(s) if s < 50 else math.nan) for s in range(60)])
    assert judge(scope_of, [(s, math.nan) for s in range(60, 65)])[0] == [60]


class Routed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.router = torch.nn.Linear(16, 4)
        self.experts = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(4))

    def forward(self, x):
        weights = self.router(x).softmax(-1)
        return sum(weights[..., i : i + 1] * expert(x) for i, expert in enumerate(self.experts))


def test_a_router_that_collapses_right_after_a_resume_is_seen(scope_of):
    spikes = []
    for session in range(2):
        torch.manual_seed(0)
        model = Routed()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        scope = scope_of(model, optimizer, resume=True, detector="expert_utilization_drift").attach()
        if session:
            with torch.no_grad():
                model.router.bias[2] = 100.0
        for _ in range(5 if session else 40):
            loss = model(torch.randn(32, 16)).square().mean()
            loss.backward()
            spike = scope.step(loss)
            spikes += [] if spike is None else [(spike["step"], spike["detector"])]
        scope.detach()
    assert (42, "expert_utilization_drift router") in spikes  # the third step; alone it would need 30 before


def test_histograms_before_and_after_a_resume_have_common_edges(scope_of):
    edges, counts = [], []
    for session in range(2):
        model, optimizer = make_training()
        if session:
            with torch.no_grad():
                model.head.weight.mul_(3)  # edges that follow the weights would hide it
        scope = scope_of(model, optimizer, resume=True, histogram_every_n_steps=1).attach()
        path = scope.session.path
        for step in range(3):
            loss_of(model, batch_of(step)).backward()
            scope.step(1.0)
        scope.detach()
    for name in ("head.weight", "embed.weight", "norm.bias"):
        found = columns(path / "layers" / f"{name}.arrow")
        edges = found["hist_edges"]
        assert len(edges) == 6
        assert all(e == edges[0] for e in edges)
    counts = columns(path / "layers" / "head.weight.arrow")["hist_counts"]
    p, q = ([(c + 0.5) / (sum(row) + 8) for c in row] for row in (counts[0], counts[-1]))
    assert sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)) > 0.3


def test_another_number_of_bins_gets_edges_of_its_own(scope_of):
    for bins in (16, 8):
        model, optimizer = make_training()
        scope = scope_of(model, optimizer, resume=True, n_histogram_bins=bins, histogram_every_n_steps=1).attach()
        path = scope.session.path
        loss_of(model, batch_of(0)).backward()
        scope.step(1.0)
        scope.detach()
        assert scope.faults == {}
    widths = [len(e) for e in columns(path / "layers" / "head.weight.arrow")["hist_edges"]]
    assert widths == [17, 9]


@pytest.mark.parametrize(
    ("detector", "memory"),
    [
        ("changepoint", REFILL),
        ({"name": "z_score", "window": 1000}, 1000),
        ({"name": "percentile", "warmup": 400}, 800),
    ],
)
def test_the_memory_that_is_refilled_is_what_the_detector_needs(detector, memory):
    assert Live(TrainScopeConfig(detector=detector), (), Boundary()).memory == memory
