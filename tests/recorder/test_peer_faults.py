"""What earlier recorders got wrong, each with the right value; faults with a file of their own are not repeated."""

from __future__ import annotations

import errno
import logging
import os
import random
import uuid

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.recorder.conftest import batch_of, columns, loss_of, make_training  # noqa: E402
from torch import nn  # noqa: E402

from trainscope.recorder import restore_rng_state  # noqa: E402

pytestmark = pytest.mark.slow


class Drawing(nn.Module):
    """Draws from every generator that a forward may use."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        mixed = np.random.rand() * x + random.gauss(0.0, 1.0)  # noqa: NPY002
        return self.drop(self.layer(mixed)).square().mean()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_spike_replays_bit_for_bit_whatever_generators_the_forward_draws_from(scope_of, device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    torch.manual_seed(0)
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    model = Drawing().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scope = scope_of(model, optimizer, checkpoint_on_spike=True, stop_on_spike=False).attach()
    path = scope.session.path
    losses = []
    for step in range(9):
        random.random()  # a sampler
        optimizer.zero_grad()
        loss = model(torch.full((4, 8), float(step), device=device))
        loss.backward()
        losses.append(loss.item())
        scope.step(float("nan") if step == 6 else losses[-1], batch_index=step)
        optimizer.step()
    scope.detach()
    saved = torch.load(path / "checkpoints" / "6.pt", weights_only=True)
    torch.load(path / "rng_states" / "step_6.pkl", weights_only=True)
    fresh = Drawing().to(device)
    fresh.load_state_dict(saved["model_state_dict"])
    restore_rng_state(path / "rng_states" / "step_6.pkl")
    replayed = fresh(torch.full((4, 8), float(saved["batch_index"]), device=device))
    assert replayed.item() == losses[6]


class Named(nn.Module):
    """Has a parameter and a child, and returns a dict."""

    def __init__(self):
        super().__init__()
        self.inner, self.scale = nn.Linear(8, 8), nn.Parameter(torch.full((8,), 2.0))

    def forward(self, x):
        return {"features": self.inner(x) * self.scale, "kind": "named"}


class Paired(nn.Module):
    """Returns a tuple."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((8,), 3.0))

    def forward(self, x):
        return x * self.weight, None


class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared, self.named, self.paired = nn.Linear(8, 8), Named(), Paired()

    def forward(self, x):
        return self.paired(self.named(self.shared(self.shared(x)))["features"])[0]


def test_modules_called_twice_with_children_or_with_dicts_and_tuples_have_activations(scope_of):
    torch.manual_seed(0)
    model = Odd()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scope = scope_of(model, optimizer, activation_metrics_every_n_steps=1).attach()
    path = scope.session.path
    seen = {"shared": [], "named": [], "paired": []}
    model.shared.register_forward_hook(lambda _m, _i, out: seen["shared"].append(out.detach()))
    model.named.register_forward_hook(lambda _m, _i, out: seen["named"].append(out["features"].detach()))
    model.paired.register_forward_hook(lambda _m, _i, out: seen["paired"].append(out[0].detach()))
    loss = model(torch.randn(4, 8)).square().mean()
    loss.backward()
    scope.step(loss)
    scope.detach()
    assert len(seen["shared"]) == 2
    for name, layer in (("shared", "shared.weight"), ("named", "named.scale"), ("paired", "paired.weight")):
        want = torch.cat(seen[name]).mean().item()
        assert columns(path / "layers" / f"{layer}.arrow")["act_mean"] == [pytest.approx(want, rel=1e-4)], name


def test_a_spike_at_a_step_that_is_not_traced_is_seen(scope_of, training):
    scope = scope_of(*training, trace_every_n_steps=5).attach()
    path = scope.session.path
    loss_of(training[0], batch_of(0)).backward()
    spikes = [scope.step(100.0 if step == 203 else 2.0 + 0.01 * (step % 3)) for step in range(210)]
    scope.detach()
    assert [s["step"] for s in spikes if s is not None] == [203]
    assert columns(path / "spikes" / "spike_step_203.arrow")["step"][-1] == 209
    assert columns(path / "layers" / "head.weight.arrow")["step"] == list(range(0, 210, 5))


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")  # noqa: PTH110
def test_the_memory_is_that_of_now_and_not_the_highest_so_far(scope_of, training):
    scope = scope_of(*training).attach()
    path = scope.session.path
    large = bytearray(os.urandom(1)) * (300 << 20)
    scope.step(1.0)
    del large
    scope.step(1.0)
    scope.detach()
    before, after = columns(path / "global.arrow")["cpu_memory_mb"]
    assert before - after > 200


class Colliding(nn.Module):
    """Names that differ in case or in what a file name cannot hold, and one that looks like a wrapper's."""

    def __init__(self):
        super().__init__()
        for name in ("w", "W", "w%2E", "_orig_mod"):
            self.register_parameter(name, nn.Parameter(torch.tensor([float(len(self._parameters) + 1)])))
        self.module = nn.Linear(1, 1, bias=False)
        self.con = nn.Linear(1, 1, bias=False)


def test_parameters_whose_names_nearly_collide_have_a_file_each(scope_of):
    model = Colliding()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    scope = scope_of(model, optimizer).attach()
    path = scope.session.path
    torch.stack([p.sum() for p in model.parameters()]).sum().backward()
    scope.step(1.0)
    scope.detach()
    assert scope.faults == {}
    files = list((path / "layers").iterdir())
    assert len(files) == len({f.name.lower() for f in files}) == 6
    norms = sorted(round(columns(f)["weight_l2_norm"][0], 4) for f in files)
    assert norms == sorted(round(p.norm().item(), 4) for p in model.parameters())


def test_a_divergence_without_end_leaves_few_files(scope_of, training):
    model, optimizer = training
    scope = scope_of(model, optimizer, checkpoint_on_spike=True, trace_every_n_steps=50).attach()
    path = scope.session.path
    for step in range(400):
        scope.step(2.0 + 0.01 * (step % 3) if step < 100 else 1.1 ** (step - 99) if step < 300 else float("nan"))
    scope.detach()
    found = columns(path / "global.arrow")
    alarms = sum(found["is_spike"])
    assert 2 <= alarms <= 1 + 200 // 20 + 1  # one in a cool-down at most, and one for all the NaN
    assert len(list((path / "rng_states").iterdir())) == alarms
    assert len(list((path / "checkpoints").iterdir())) == alarms


def test_a_full_disk_is_one_warning_and_the_training_is_the_same(scope_of, training, monkeypatch, caplog):
    model, optimizer = training
    scope = scope_of(model, optimizer).attach()
    path = scope.session.path
    real, full = os.write, []

    def write(fd, data):
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data)

    monkeypatch.setattr("trainscope.store.stream.os.write", write)
    with caplog.at_level(logging.WARNING, "trainscope"):
        for step in range(60):
            full[:] = [True] if 20 <= step < 40 else []
            optimizer.zero_grad()
            loss = loss_of(model, batch_of(step))
            loss.backward()
            scope.step(loss)
            optimizer.step()
        scope.detach()
    assert [r.getMessage() for r in caplog.records if "No space left" in r.getMessage()] == [
        r.getMessage() for r in caplog.records
    ]
    assert len(caplog.records) == 1
    steps = columns(path / "global.arrow")["step"]
    assert set(range(10)) | set(range(45, 60)) <= set(steps)
    assert steps == sorted(set(steps))
    other, its_optimizer = make_training()
    torch.manual_seed(0)
    make_training()  # the same number of draws as before the loop above
    for step in range(60):
        its_optimizer.zero_grad()
        loss_of(other, batch_of(step)).backward()
        its_optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


def test_a_remote_store_that_refuses_is_one_warning(scope_of, training, monkeypatch, caplog):
    fsspec = pytest.importorskip("fsspec")

    def refuse(*_args, **_kwargs):
        raise PermissionError("403 Forbidden")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "put_file", refuse)
    uri = f"memory://bucket-{uuid.uuid4().hex}"
    model, optimizer = training
    scope = scope_of(model, optimizer, storage_uri=uri, compaction_every_n_steps=5).attach()
    path = scope.session.path
    with caplog.at_level(logging.WARNING, "trainscope"):
        for step in range(40):
            scope.step(1.0, batch_index=step)
        scope.detach()
    assert [r.getMessage() for r in caplog.records] == [
        "recorder fault, training goes on (store: RemoteError: "
        f"{uri}: cannot be written (PermissionError: 403 Forbidden))"
    ]
    assert list(scope.faults) == ["store: RemoteError"]
    assert columns(path / "global.arrow")["step"] == list(range(40))
