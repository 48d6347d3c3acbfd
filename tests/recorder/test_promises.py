"""The same numbers and no wait for the device: promises, each shown to fail against a recorder that breaks it."""

from __future__ import annotations

import math
from collections import Counter

import pytest

torch = pytest.importorskip("torch")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from trainscope.probe import transfer  # noqa: E402
from trainscope.probe.instrument import Probe  # noqa: E402
from trainscope.probe.statistics import Statistics  # noqa: E402
from trainscope.store.writer import FLUSH_STEPS  # noqa: E402

from .promised import same, train  # noqa: E402

pytestmark = pytest.mark.slow


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
