# ruff: noqa: NPY002
"""No fault of the recorder stops training: a promise, shown to fail against a recorder that breaks it."""

from __future__ import annotations

import logging
import random
from collections import Counter

import numpy  # its old global generator is what a recorder must leave alone
import pytest

torch = pytest.importorskip("torch")
from tests.recorder.conftest import batch_of, loss_of, make_training  # noqa: E402

from trainscope.core.errors import StoreError  # noqa: E402
from trainscope.probe.forwards import Forwards  # noqa: E402
from trainscope.probe.instrument import Probe  # noqa: E402
from trainscope.probe.statistics import Statistics  # noqa: E402
from trainscope.store.writer import RunWriter  # noqa: E402

from .promised import STEPS, same, train  # noqa: E402

pytestmark = pytest.mark.slow


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
