"""The recorder leaves no trace: a promise, shown to fail against a recorder that breaks it."""

from __future__ import annotations

import gc

import pytest

torch = pytest.importorskip("torch")
from tests.recorder.conftest import batch_of, columns, loss_of, make_training  # noqa: E402

from trainscope import StopTraining, TrainScope  # noqa: E402
from trainscope.probe.forwards import Forwards  # noqa: E402
from trainscope.recorder.session import Session  # noqa: E402

from .promised import traces  # noqa: E402

pytestmark = pytest.mark.slow


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
