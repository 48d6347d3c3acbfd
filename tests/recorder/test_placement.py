"""What is said where ``scope.step`` stands in a wrong place, or the optimizer is another model's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from tests.recorder.conftest import batch_of, columns, loss_of, make_training  # noqa: E402

pytestmark = pytest.mark.slow
PLACES = ("after backward", "after the optimizer", "after zero_grad")


def train(scope, model, optimizer, place, steps=4):
    for step in range(steps):
        loss = loss_of(model, batch_of(step))
        loss.backward()
        for here in PLACES:
            if here == "after the optimizer":
                optimizer.step()
            if here == "after zero_grad":
                optimizer.zero_grad()
            if here == place:
                scope.step(loss)


def told(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "trainscope"]


def test_nothing_is_said_where_the_step_stands_right(scope_of, training, caplog):
    with scope_of(*training) as scope:
        train(scope, *training, "after backward")
    assert (told(caplog), scope.faults) == ([], {})


def test_a_step_after_the_optimizer_is_told_once_with_the_way_out(scope_of, training, caplog):
    with scope_of(*training) as scope:
        train(scope, *training, "after the optimizer")
    (message,) = told(caplog)
    assert message.startswith("step 1: the weights changed between the forward and scope.step")
    assert message.endswith("call scope.step before optimizer.step()")
    update = columns(scope.path / "global.arrow")["update_norm"]
    assert update[0] > 0  # of the step after, as the message says
    assert update[-1] == 0


def test_a_step_without_gradients_is_told_once_with_the_way_out(scope_of, training, caplog):
    with scope_of(*training) as scope:
        train(scope, *training, "after zero_grad")
    assert told(caplog) == [
        "step 0: not one parameter has a gradient, none is recorded; "
        "call scope.step after backward() and before optimizer.zero_grad()"
    ]
    assert columns(scope.path / "global.arrow")["grad_norm_before_clip"] == [None] * 4


def test_an_optimizer_of_another_model_is_told(scope_of, training, caplog):
    model, _ = training
    _, foreign = make_training()
    with scope_of(model, foreign) as scope:
        train(scope, model, foreign, "after backward", steps=1)
    (message,) = told(caplog)
    assert message.startswith("not one of the model's parameters is in the optimizer that the recorder was given")


def test_micro_batches_and_an_evaluation_between_are_a_right_place(scope_of, training, caplog):
    model, optimizer = training
    with scope_of(model, optimizer) as scope:
        for step in range(4):
            for part in range(3):
                loss = loss_of(model, batch_of(3 * step + part))
                loss.backward()
            scope.step(loss)
            optimizer.step()
            optimizer.zero_grad()
            model.eval()
            loss_of(model, batch_of(99)).item()
            model.train()
    assert told(caplog) == []


def test_the_folder_is_known_while_it_is_written_and_after(scope_of, training):
    scope = scope_of(*training)
    assert scope.path is None
    with scope:
        train(scope, *training, "after backward", steps=2)
        inside = scope.path
    assert scope.path == inside
    assert (inside / "meta.json").is_file()
