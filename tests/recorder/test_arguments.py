"""What a training loop may hand over at a step, and how a wrong argument is told."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.recorder.conftest import batch_of, columns, loss_of, make_training  # noqa: E402

from trainscope import TrainScope, TrainScopeConfig  # noqa: E402
from trainscope.core.errors import ConfigError, RecorderError  # noqa: E402

pytestmark = pytest.mark.slow


def split(model):
    """Two optimizers for one model."""
    rest = [p for name, p in model.named_parameters() if not name.startswith("embed")]
    return torch.optim.SGD(model.embed.parameters(), lr=0.5, momentum=0.9), torch.optim.AdamW(rest, lr=1e-3)


def train(scope, model, stepping, steps, first=0, **arguments):
    for step in range(first, first + steps):
        for optimizer in stepping:
            optimizer.zero_grad()
        loss = loss_of(model, batch_of(step))
        loss.backward()
        scope.step(loss, **arguments)
        for optimizer in stepping:
            optimizer.step()


def test_optimizers_may_be_handed_over_at_the_step(scope_of):
    model, _ = make_training()
    first, second = split(model)
    scope = scope_of(model, first).attach()
    path = scope.session.path
    train(scope, model, (first, second), 4, optimizers=[first, second])
    scope.detach()
    assert scope.faults == {}
    found = columns(path / "global.arrow")
    assert (found["lr"], found["lr_1"]) == ([0.5] * 4, [1e-3] * 4)
    assert any(v is not None and v > 0 for v in columns(path / "layers" / "head.weight.arrow")["adam_v_norm"])
    assert all(update > 0 for update in columns(path / "layers" / "embed.weight.arrow")["update_l2_norm"])


def test_an_optimizer_made_anew_takes_the_place_of_the_one_before(scope_of, training):
    model, old = training
    scope = scope_of(model, old, histogram_every_n_steps=1).attach()
    path = scope.session.path
    train(scope, model, [old], 3)
    new = torch.optim.AdamW(model.parameters(), lr=5e-4)
    train(scope, model, [new], 3, first=3, optimizers=new)
    scope.detach()
    assert scope.faults == {}
    found = columns(path / "global.arrow")
    assert found["step"] == list(range(6))
    assert found["lr"] == [1e-2] * 3 + [5e-4] * 3
    assert "lr_1" not in found
    layer = columns(path / "layers" / "head.weight.arrow")
    assert layer["adam_v_norm"][3] in (None, 0.0)  # the state of the new one is empty before its first step
    assert layer["adam_v_norm"][1] > 0
    assert layer["adam_v_norm"][4] > 0
    assert all(update > 0 for update in layer["update_l2_norm"])
    assert all(edges == layer["hist_edges"][0] for edges in layer["hist_edges"])


def test_some_of_the_known_optimizers_change_nothing(scope_of):
    model, _ = make_training()
    first, second = split(model)
    scope = scope_of(model, [first, second]).attach()
    path = scope.session.path
    for step in range(4):
        train(scope, model, [first, second], 1, first=step, optimizers=[(first, second)[step % 2]])
    scope.detach()
    assert columns(path / "global.arrow")["lr_1"] == [1e-3] * 4


def test_a_plug_in_sees_the_optimizers_of_the_step(scope_of):
    from trainscope import MetricPlugin

    class Counting(MetricPlugin):
        name = "counting"

        def compute(self, model, optimizer, step):
            return {"optimizers": float(len(optimizer) if isinstance(optimizer, list) else 1)}

    model, _ = make_training()
    first, second = split(model)
    scope = scope_of(model, first, metric_plugins=[Counting]).attach()
    path = scope.session.path
    train(scope, model, [first, second], 1)
    train(scope, model, [first, second], 1, first=1, optimizers=[first, second])
    scope.detach()
    assert columns(path / "plugin_metrics.arrow")["value"] == [1.0, 2.0]


@pytest.mark.parametrize("kind", [np.float32, np.float64, int, lambda v: torch.tensor(v, dtype=torch.bfloat16)])
def test_a_loss_of_any_numeric_type_is_taken(scope_of, training, kind):
    scope = scope_of(*training).attach()
    path = scope.session.path
    scope.step(kind(3.0), batch_index=np.int64(4), step=torch.tensor(7))
    scope.detach()
    found = columns(path / "global.arrow")
    assert (found["loss"], found["batch_index"], found["step"]) == ([3.0], [4], [7])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"loss": "nan?"}, r"^loss = 'nan\?': expected a number"),
        ({"loss": None}, r"^loss = None: expected a number"),
        ({"loss": torch.ones(3)}, r"^loss: expected one real number, got shape \(3,\)"),
        ({"loss": torch.ones(1, device="meta")}, r"^loss: expected one real number"),
        ({"loss": 1.0, "step": -2}, r"^step = -2: expected a whole number from 0 to"),
        ({"loss": 1.0, "step": 2**63}, r"^step = 9223372036854775808: expected a whole number from 0 to"),
        ({"loss": 1.0, "batch_index": 2**70}, r"^batch_index = \d+: expected a whole number from"),
        ({"loss": 1.0, "step": 1.5}, r"^step = 1\.5: expected a whole number"),
        ({"loss": 1.0, "batch_index": "7"}, r"^batch_index = '7': expected a whole number"),
        ({"loss": 1.0, "scaler": 1024.0}, r"^scaler = 1024\.0: expected a GradScaler"),
        ({"loss": 1.0, "optimizers": []}, r"^optimizers: the list is empty"),
        ({"loss": 1.0, "step": True}, r"^step = True: expected a whole number"),
        ({"loss": 1.0, "grad_norm_after_clip": "a"}, r"^grad_norm_after_clip = 'a': expected a number"),
        ({"loss": 1.0, "grad_norm_after_clip": torch.ones(2)}, r"^grad_norm_after_clip: expected one real number"),
        ({"loss": 1.0, "optimizers": "adam"}, r"^optimizers = 'adam': expected an optimizer"),
        ({"loss": 1.0, "optimizers": ["adam"]}, r"^optimizers\[0\] = 'adam': not an optimizer"),
    ],
)
def test_a_wrong_argument_is_named(scope_of, training, arguments, said):
    scope = scope_of(*training).attach()
    with pytest.raises(RecorderError, match=said):
        scope.step(**arguments)
    assert scope.step(1.0) is None
    scope.detach()


def test_a_model_in_place_of_the_optimizer_is_told_when_the_recorder_is_made(training):
    model, _ = training
    with pytest.raises(RecorderError, match=r"^optimizer = Net\("):
        TrainScope(model, model)
    with pytest.raises(RecorderError, match=r"^optimizer: the list is empty"):
        TrainScope(model, [])


@pytest.mark.parametrize("device", ["x", "cuda:99", "meta", "../x", "a\nb", "\ud800"])
def test_a_device_that_cannot_be_used_is_told_when_the_recorder_is_made(training, device):
    with pytest.raises(ConfigError, match=r"^device = ") as error:
        TrainScope(*training, TrainScopeConfig(device=device))
    assert "\n" not in str(error.value)


def test_model_and_optimizer_the_wrong_way_round_are_told(training):
    model, optimizer = training
    with pytest.raises(RecorderError, match=r"^model = AdamW .*: expected one torch.nn.Module"):
        TrainScope(optimizer, model)


def test_what_the_optimizer_sets_is_in_the_meta_file_with_its_betas_and_a_rate_that_is_a_tensor(scope_of, training):
    model, _ = training
    optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(0.25), betas=(0.9, 0.95))
    with scope_of(model, optimizer) as scope:
        pass
    (made,) = json.loads((scope.path / "meta.json").read_text())["optimizers"]
    assert made["groups"][0]["betas"] == [0.9, 0.95]
    assert made["groups"][0]["lr"] == 0.25
    assert "params" not in made["groups"][0]


@pytest.mark.parametrize("model", [None, [torch.nn.Linear(1, 1)], torch.nn.Linear(1, 1).forward])
def test_what_is_no_module_is_told_when_the_recorder_is_made(training, model):
    with pytest.raises(RecorderError, match=r"model = .*: expected one torch\.nn\.Module"):
        TrainScope(model, training[1])


@pytest.mark.parametrize("given", [{"run_dir": "runs"}, "runs"])
def test_what_is_no_config_is_told_when_the_recorder_is_made(training, given):
    with pytest.raises(ConfigError, match=r"config = .*: expected a TrainScopeConfig; load_config makes one"):
        TrainScope(*training, given)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"loss": 10**400}, "loss = 1000.*: expected a number"),
        ({"loss": 10**5000}, "loss = one int too long to show: expected a number"),
        ({"grad_norm_after_clip": "high"}, "grad_norm_after_clip = 'high': expected a number"),
        ({"grad_norm_after_clip": torch.zeros(0)}, "grad_norm_after_clip: expected one real number"),
        ({"step": 2**53 + 1}, f"step = .*: expected a whole number from 0 to {2**53}"),
    ],
)
def test_a_number_that_cannot_be_kept_is_told_and_costs_no_other_step(scope_of, training, arguments, text):
    scope = scope_of(*training).attach()
    path = scope.session.path
    train(scope, training[0], [training[1]], 3)
    with pytest.raises(RecorderError, match=text):
        scope.step(**{"loss": 1.0, **arguments})
    train(scope, training[0], [training[1]], 2, first=3)
    scope.detach()
    assert scope.faults == {}
    assert columns(path / "global.arrow")["step"] == [0, 1, 2, 3, 4]
