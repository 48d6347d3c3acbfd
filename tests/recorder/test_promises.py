# ruff: noqa: NPY002
"""The five promises of the recorder, each shown to fail against a recorder that breaks it on purpose."""

from __future__ import annotations

import gc
import logging
import math
import random
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import numpy  # its old global generator is what a recorder must leave alone
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402, N812
from tests.recorder.conftest import batch_of, columns, loss_of, make_training  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import trainscope  # noqa: E402
from trainscope import StopTraining, TrainScope  # noqa: E402
from trainscope.core.errors import StoreError  # noqa: E402
from trainscope.probe import transfer  # noqa: E402
from trainscope.probe.forwards import Forwards  # noqa: E402
from trainscope.probe.instrument import Probe  # noqa: E402
from trainscope.probe.statistics import Statistics  # noqa: E402
from trainscope.recorder.session import Session  # noqa: E402
from trainscope.store.writer import FLUSH_STEPS, RunWriter  # noqa: E402

pytestmark = pytest.mark.slow
STEPS = 12


def train(scope_of=None, steps=STEPS, clip=True, **settings):
    """Train a little; return the weights, and what each generator draws next."""
    model, optimizer = make_training()
    torch.manual_seed(1)
    random.seed(1)
    numpy.random.seed(1)
    scope = scope_of(model, optimizer, **settings).attach() if scope_of is not None else None
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, batch_of(step))
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        if scope is not None:
            scope.step(loss, batch_index=step)
        optimizer.step()
    if scope is not None:
        scope.detach()
        assert scope.faults == {}
    weights = [p.detach().clone() for p in model.parameters()]
    return weights, (torch.rand(1).item(), random.random(), numpy.random.rand())


def same(first, second):
    return all(torch.equal(a, b) for a, b in zip(first[0], second[0], strict=True)) and first[1] == second[1]


EVERYTHING = {
    "activation_metrics_every_n_steps": 1,
    "histogram_every_n_steps": 1,
    "rng_every_n_steps": 1,
    "checkpoint_on_spike": True,
}


@pytest.mark.parametrize("settings", [{}, EVERYTHING], ids=["default", "everything"])
def test_same_numbers(scope_of, settings):
    assert same(train(), train(scope_of, **settings))


def test_same_numbers_fails_for_a_recorder_that_draws_a_random_number(scope_of, monkeypatch):
    original = Probe.measure
    monkeypatch.setattr(Probe, "measure", lambda *a, **k: (torch.rand(1), original(*a, **k))[1])
    assert not same(train(), train(scope_of))


def test_same_numbers_fails_for_a_recorder_that_touches_a_gradient(scope_of, monkeypatch):
    original = Statistics.measure

    def measure(self, *args, **kwargs):
        self.watched.tensors[0].grad.mul_(1 + 1e-6)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(Statistics, "measure", measure)
    assert not same(train(clip=False), train(scope_of, clip=False))


PACKAGE = str(Path(trainscope.__file__).parent)


def traces(model):
    """List everything that a recorder might leave behind."""
    clip = torch.nn.utils.clip_grad
    wrapped = [
        f for f in (F.scaled_dot_product_attention, F.softmax, torch.softmax, clip._clip_grads_with_norm_,
                    torch.nn.utils.clip_grads_with_norm_)
        if hasattr(f, "__wrapped__") and getattr(f, "__code__", f.__init__).co_filename.startswith(PACKAGE)
    ]  # fmt: skip
    hooks = [
        hook
        for module in model.modules()
        for hooks in (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks)
        for hook in hooks.values()
    ]
    hooks += [h for p in model.parameters() for h in (p._backward_hooks or {}).values()]
    return wrapped + hooks


def attached(scope_of, **settings):
    model, optimizer = make_training()
    scope = scope_of(model, optimizer, activation_metrics_every_n_steps=1, **settings).attach()
    assert traces(model)
    loss = loss_of(model, batch_of(0))
    loss.backward()
    return model, scope, loss


def test_no_trace_left(scope_of):
    model, scope, loss = attached(scope_of)
    scope.step(loss)
    scope.detach()
    assert traces(model) == []


def test_no_trace_left_after_an_exception_in_the_with_block(scope_of):
    model, optimizer = make_training()
    with pytest.raises(ZeroDivisionError), scope_of(model, optimizer):  # noqa: PT012
        loss_of(model, batch_of(0)).backward()
        1 / 0  # noqa: B018
    assert traces(model) == []


def test_no_trace_left_after_an_exception_that_nobody_cleans_up_after(scope_of):
    model, optimizer = make_training()

    def loop():
        scope = scope_of(model, optimizer).attach()
        loss = loss_of(model, batch_of(0))
        loss.backward()
        scope.step(loss)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop()
    gc.collect()
    assert traces(model) == []


def test_no_trace_left_after_a_stop(scope_of):
    model, scope, _ = attached(scope_of, stop_on_spike=True)
    with pytest.raises(StopTraining):
        scope.step(float("nan"))
    assert traces(model) == []


def test_no_trace_left_fails_for_a_recorder_that_forgets_a_hook(scope_of, monkeypatch):
    monkeypatch.setattr(Forwards, "detach", lambda _self: None)
    model, scope, loss = attached(scope_of)
    scope.step(loss)
    scope.detach()
    assert traces(model)


class Counting(TorchDispatchMode):
    """Counts what would wait for an accelerator: a number asked for, a copy to the CPU."""

    def __init__(self):
        super().__init__()
        self.calls = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


def syncs(scope_of=None, **settings):
    with Counting() as counting:
        train(scope_of, steps=25, **settings)
    return counting.calls["_local_scalar_dense"] + counting.calls["is_nonzero"]


def test_no_device_sync_per_step(scope_of):
    assert syncs(scope_of) == syncs()


def test_no_device_sync_per_step_and_one_transfer_a_flush(scope_of, monkeypatch):
    """As on an accelerator: nothing is looked at before the flush, and then everything in one call."""
    moves = []
    original = transfer.to_host
    monkeypatch.setattr(Statistics, "deferred", property(lambda _self: True))
    monkeypatch.setattr("trainscope.recorder.session.FLUSH_SECONDS", math.inf)  # a slow machine flushes more often
    for module in ("trainscope.probe.instrument", "trainscope.probe.histograms"):
        monkeypatch.setattr(f"{module}.to_host", lambda bundles: moves.append(len(bundles)) or original(bundles))
    train(scope_of, steps=30)
    once_for_edges, *flushes = moves
    assert once_for_edges == 1
    assert sum(flushes) == 30
    assert len(flushes) <= 30 / FLUSH_STEPS + 1


def test_no_device_sync_per_step_fails_for_a_recorder_that_asks_for_a_number(scope_of, monkeypatch):
    original = Probe.measure
    monkeypatch.setattr(
        Probe,
        "measure",
        lambda self, *a, **k: (self.statistics.watched.tensors[0].sum().item(), original(self, *a, **k))[1],
    )
    assert syncs(scope_of) == syncs() + 25


BREAKS = {
    "statistics": (Statistics, "_local"),
    "reading": (Probe, "read"),
    "judging": (Probe, "peek"),
    "activations": (Probe, "_note_activations"),
    "histograms": (Probe, "_note_histograms"),
    "storing": (RunWriter, "append"),
    "flushing": (RunWriter, "flush"),
    "closing": (RunWriter, "close"),
    "forward": (Forwards, "counts"),
}


@pytest.mark.parametrize("place", BREAKS)
def test_never_stops_training_by_its_own_fault(scope_of, monkeypatch, caplog, place):
    def broken(*_args, **_kwargs):
        raise (StoreError("disk full") if place in ("storing", "flushing") else RuntimeError("broken on purpose"))

    home, name = BREAKS[place]
    monkeypatch.setattr(home, name, broken)
    plain = train()
    model, optimizer = make_training()
    torch.manual_seed(1)
    random.seed(1)
    numpy.random.seed(1)
    with caplog.at_level(logging.WARNING, "trainscope"):
        scope = scope_of(model, optimizer).attach()
        for step in range(STEPS):
            optimizer.zero_grad()
            loss = loss_of(model, batch_of(step))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            scope.step(loss)
            optimizer.step()
        scope.detach()
    weights = [p.detach().clone() for p in model.parameters()]
    assert same(plain, (weights, (torch.rand(1).item(), random.random(), numpy.random.rand())))
    kinds = Counter(record.getMessage() for record in caplog.records)
    assert kinds
    assert max(kinds.values()) == 1
    assert len(kinds) <= 3


def test_never_stops_training_by_its_own_fault_when_no_folder_can_be_made(scope_of, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    model, optimizer = make_training()
    scope = scope_of(model, optimizer, run_dir=str(tmp_path / "file")).attach()
    for step in range(3):
        scope.step(1.0, batch_index=step)
    assert scope.step(float("nan"))["spike_score"] == float("inf")
    scope.detach()
    assert list(scope.faults) == ["store: StoreError"]


def test_never_stops_training_by_its_own_fault_fails_for_a_recorder_without_a_boundary(scope_of, monkeypatch):
    monkeypatch.setattr(
        "trainscope.probe.boundary.Boundary.call", lambda _self, _kind, function, *a, **k: function(*a, **k)
    )
    monkeypatch.setattr(*BREAKS["statistics"], lambda *_: 1 / 0)
    model, optimizer = make_training()
    scope = scope_of(model, optimizer).attach()
    with pytest.raises(ZeroDivisionError):
        scope.step(1.0)
    scope.detach()


KILLED = """
    import os, sys, signal, torch
    sys.path.insert(0, {root!r})
    from tests.recorder.conftest import batch_of, loss_of, make_training
    from trainscope import TrainScope, TrainScopeConfig
    if {broken}:
        from trainscope.store.writer import RunWriter
        RunWriter.flush = lambda self: None
    model, optimizer = make_training()
    scope = TrainScope(model, optimizer, TrainScopeConfig(run_dir={run_dir!r}, run_name="run")).attach()
    for step in range(1000):
        optimizer.zero_grad()
        loss = loss_of(model, batch_of(step))
        loss.backward()
        scope.step(loss)
        optimizer.step()
        if step == {last}:
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def killed(tmp_path, warm):
    """Return a function that trains in a process of its own until it is killed, and returns the recorded steps."""

    def call(last, *, broken=False):
        root = str(Path(__file__).resolve().parents[2])
        script = tmp_path / "killed.py"
        script.write_text(textwrap.dedent(KILLED).format(root=root, run_dir=str(tmp_path), last=last, broken=broken))
        done = subprocess.run(warm(sys.executable, str(script)), capture_output=True, text=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        path = tmp_path / "run" / "global.arrow"
        return columns(path)["step"] if path.exists() else []

    return call


@pytest.mark.parametrize("last", [47, 50, 53])
def test_a_killed_run_reads_back_to_its_last_flush(killed, last):
    steps = killed(last)
    assert steps == list(range(len(steps)))
    assert len(steps) >= last + 1 - FLUSH_STEPS - 1


def test_a_killed_run_reads_back_to_its_last_flush_fails_for_a_recorder_that_does_not_flush(killed):
    assert killed(50, broken=True) == []


def test_two_recorders_at_once_do_not_disturb_each_other(scope_of):
    model, optimizer = make_training()
    first = scope_of(model, optimizer, run_name="a").attach()
    second = scope_of(model, optimizer, run_name="b").attach()
    for step in range(6):
        optimizer.zero_grad()
        loss = loss_of(model, batch_of(step))
        loss.backward()
        first.step(loss)
        second.step(loss)
        optimizer.step()
    paths = [scope.session.path for scope in (first, second)]
    first.detach()
    second.detach()
    assert traces(model) == []
    losses = [columns(path / "global.arrow")["loss"] for path in paths]
    assert losses[0] == losses[1]
    assert isinstance(first, TrainScope)
    assert Session.__doc__
