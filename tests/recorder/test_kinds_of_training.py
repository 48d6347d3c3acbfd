"""Beside the plain loop: loss scaling, several optimizers, accumulation, experts."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")
from tests.recorder.conftest import batch_of, columns, loss_of, make_training  # noqa: E402
from torch import nn  # noqa: E402

from trainscope.detectors import by_id  # noqa: E402
from trainscope.readers import read_runs  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("unscale", [True, False])
@pytest.mark.parametrize("clip", [True, False])
def test_a_loss_scale_is_taken_out_of_the_gradients(scope_of, training, unscale, clip):
    model, optimizer = training
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14, growth_interval=100)
    scope = scope_of(model, optimizer).attach()
    path = scope.session.path
    truth = []
    for step in range(6):
        optimizer.zero_grad()
        loss = loss_of(model, batch_of(step))
        grads = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
        truth.append(torch.stack([g.norm() for g in grads]).norm().item())
        scaler.scale(loss).backward()
        if unscale:
            scaler.unscale_(optimizer)
        if clip and unscale:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scope.step(loss, scaler=scaler)
        scaler.step(optimizer)
        scaler.update()
    scope.detach()
    found = columns(path / "global.arrow")
    assert found["grad_norm_before_clip"] == pytest.approx(truth, rel=1e-3)
    after = [0.1] * 6 if clip and unscale else truth
    assert found["grad_norm_after_clip"] == pytest.approx(after, rel=1e-3)
    assert found["grad_scale"] == [2.0**14] * 6
    assert 0.1 < columns(path / "layers" / "head.weight.arrow")["rms_t"][5] < 10


def test_a_step_the_scaler_skips_is_no_spike_and_is_noted(scope_of, training):
    model, optimizer = training
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scope = scope_of(model, optimizer).attach()
    path = scope.session.path
    for step in range(4):
        optimizer.zero_grad()
        loss = loss_of(model, batch_of(step))
        scaler.scale(loss).backward()
        if step == 1:
            model.head.weight.grad[0, 0] = math.inf
        assert scope.step(loss, scaler=scaler) is None
        scaler.step(optimizer)
        scaler.update()
    scope.detach()
    found = columns(path / "global.arrow")
    assert found["step_skipped"][:3] == [False, True, False]
    assert found["update_norm"][1] == 0
    assert found["grad_scale"][:3] == [1024, 1024, 512]
    (run,) = read_runs(str(path))
    assert math.isinf(run.series["train/grad_norm"].value[1])
    non_finite = by_id("non_finite")
    assert non_finite.detect(run, non_finite.params) == []


def test_several_optimizers_are_all_recorded(scope_of):
    model, _ = make_training()
    first = torch.optim.SGD(model.embed.parameters(), lr=0.5, momentum=0.9)
    rest = [p for name, p in model.named_parameters() if not name.startswith("embed")]
    second = torch.optim.AdamW(rest, lr=1e-3)
    scope = scope_of(model, [first, second], checkpoint_on_spike=True).attach()
    path = scope.session.path
    for step in range(4):
        first.zero_grad()
        second.zero_grad()
        loss = loss_of(model, batch_of(step))
        loss.backward()
        scope.step(math.nan if step == 3 else loss)
        first.step()
        second.step()
    scope.detach()
    assert scope.faults == {}
    found = columns(path / "global.arrow")
    assert (found["lr"][0], found["lr_1"][0]) == (0.5, 1e-3)
    assert columns(path / "layers" / "embed.weight.arrow")["update_l2_norm"][0] > 0
    assert any(norm is not None and norm > 0 for norm in columns(path / "layers" / "head.weight.arrow")["adam_v_norm"])
    saved = torch.load(path / "checkpoints" / "3.pt", weights_only=True)
    assert len(saved["optimizer_state_dict"]) == 2


def test_accumulated_micro_batches_are_one_step(scope_of, training):
    model, optimizer = training
    scope = scope_of(model, optimizer).attach()
    path = scope.session.path
    for step in range(2):
        optimizer.zero_grad()
        for micro in range(3):
            loss = loss_of(model, batch_of(3 * step + micro)) / 3
            loss.backward()
        scope.step(loss * 3)
        optimizer.step()
    scope.detach()
    assert columns(path / "global.arrow")["micro_batches"] == [3, 3]


class Moe(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(16, 4)
        self.experts = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))

    def forward(self, x):
        weights = self.router(x).softmax(-1)
        return sum(weights[..., i : i + 1] * expert(x) for i, expert in enumerate(self.experts))


def test_routing_that_collapses_is_a_spike_of_the_utilization_detector(scope_of):
    torch.manual_seed(0)
    model = Moe()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    scope = scope_of(model, optimizer, detector={"name": "expert_utilization_drift", "warmup": 5}).attach()
    path = scope.session.path
    spikes = []
    for step in range(20):
        if step == 10:
            with torch.no_grad():
                model.router.bias[2] = 100.0
        loss = model(torch.randn(32, 16)).square().mean()
        loss.backward()
        spike = scope.step(loss)
        if spike is not None:
            spikes.append((spike["step"], spike["detector"], spike["spike_score"]))
    scope.detach()
    of_shares = [spike for spike in spikes if spike[1].startswith("expert_utilization_drift")]
    assert of_shares == [(12, "expert_utilization_drift router", 1.0)]
    found = columns(path / "moe.arrow")
    assert set(found["block"]) == {"router"}
    assert found["shares"][-1] == [0, 0, 1, 0]


def test_many_parameters_need_few_open_files(scope_of):
    resource = pytest.importorskip("resource")
    model = nn.Module()
    for i in range(1500):
        model.register_parameter(f"weight_{'ü' * 300}_{i}", nn.Parameter(torch.ones(2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        scope = scope_of(model, optimizer).attach()
        for _ in range(3):
            loss = torch.stack([p.sum() for p in model.parameters()]).sum()
            loss.backward()
            scope.step(loss)
            optimizer.step()
        path = scope.session.path
        scope.detach()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert scope.faults == {}
    assert len(list((path / "layers").iterdir())) == 1500


def test_double_backward_and_closures_are_left_alone(scope_of):
    model, _ = make_training()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    scope = scope_of(model, optimizer).attach()

    def closure():
        optimizer.zero_grad()
        loss = loss_of(model, batch_of(0))
        loss.backward()
        return loss

    for _ in range(2):
        loss = closure()
        scope.step(loss)
        optimizer.step(closure)
    scope.detach()
    assert scope.faults == {}
