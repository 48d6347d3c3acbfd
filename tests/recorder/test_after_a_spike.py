"""What a spike leaves behind: its window, its checkpoint, the states of the generators, the end of the training."""

from __future__ import annotations

import math
import random

import pytest

torch = pytest.importorskip("torch")

from tests.recorder.conftest import batch_of, columns, loss_of, make_training  # noqa: E402

from trainscope import StopTraining  # noqa: E402
from trainscope.core.errors import ReadError  # noqa: E402
from trainscope.recorder import load_rng_state, restore_rng_state  # noqa: E402

from .loops import run  # noqa: E402

pytestmark = pytest.mark.slow


def test_stop_on_spike_stops_and_says_where(scope_of, training):
    scope = scope_of(*training, stop_on_spike=True).attach()
    path = scope.session.path
    with pytest.raises(StopTraining, match="step 4") as stop:
        run(scope, *training, 10, loss_at=lambda s, v: math.nan if s == 4 else v)
    assert (stop.value.step, stop.value.spike_score) == (4, math.inf)
    with pytest.warns(DeprecationWarning, match="spike_score"):
        assert stop.value.z_score == math.inf
    found = columns(path / "global.arrow")
    assert found["step"] == [0, 1, 2, 3, 4]
    assert found["update_norm"][-1] is None  # the step was never made


def noisier(step, _value):
    """A loss whose noise is 2.5 times as large from step 400 on."""
    return 2.0 + random.Random(step).gauss(0.0, 0.06) * (2.5 if step >= 400 else 1.0)


def test_grown_noise_is_recorded_and_told_but_stops_nothing(scope_of, training, caplog):
    scope = scope_of(*training, stop_on_spike=True, trace_every_n_steps=1000).attach()
    path = scope.session.path
    assert run(scope, *training, 480, loss_at=noisier) == []
    scope.detach()
    found = columns(path / "global.arrow")
    grown = [(s, g) for s, g in zip(found["step"], found["noise_growth"], strict=True) if g is not None]
    assert len(grown) == 1
    step, growth = grown[0]
    assert 400 < step < 460
    assert growth > 1.6
    assert not any(found["is_spike"])
    assert not list((path / "rng_states").glob("*"))
    assert [r.message for r in caplog.records if "noise of the loss" in r.message] == [
        f"step {step}: the noise of the loss is {growth:.1f} times as large as ever before"
    ]


def test_grown_noise_stops_a_training_that_asked_for_that(scope_of, training):
    detector = {"name": "changepoint", "noise_is_spike": True}
    scope = scope_of(*training, stop_on_spike=True, detector=detector, trace_every_n_steps=1000).attach()
    with pytest.raises(StopTraining) as stop:
        run(scope, *training, 480, loss_at=noisier)
    assert 400 < stop.value.step < 460


def test_the_window_around_a_spike_has_steps_from_after_it(scope_of, training):
    scope = scope_of(*training, spike_window_before=6, spike_window_after=4).attach()
    path = scope.session.path
    run(scope, *training, 30, loss_at=lambda s, v: math.nan if s == 15 else v)
    scope.detach()
    assert columns(path / "spikes" / "spike_step_15.arrow")["step"] == list(range(9, 20))
    layer = columns(path / "spikes" / "spike_step_15_layers" / "head.weight.arrow")
    assert layer["step"] == list(range(9, 20))
    assert all(value > 0 for value in layer["grad_l2_norm"])


@pytest.mark.parametrize("template", [True, "saved/at_{step}.ckpt"])
def test_a_spike_replays_bit_for_bit_from_its_checkpoint_and_generators(scope_of, training, template):
    """Dropout is on: with the state from after the forward, or without Python's, the loss would differ."""
    model, optimizer = training
    scope = scope_of(model, optimizer, checkpoint_on_spike=template).attach()
    path = scope.session.path
    torch.manual_seed(5)
    losses = {}

    def spoil(step, value):
        losses[step] = value
        return math.nan if step == 6 else value

    run(scope, model, optimizer, 10, loss_at=spoil)
    scope.detach()
    file = path / ("checkpoints/6.pt" if template is True else "saved/at_6.ckpt")
    saved = torch.load(file, weights_only=True)
    fresh, other = make_training()
    fresh.load_state_dict(saved["model_state_dict"])
    other.load_state_dict(saved["optimizer_state_dict"])
    restore_rng_state(path / "rng_states" / "step_6.pkl")
    assert loss_of(fresh, batch_of(saved["batch_index"])).item() == losses[6]
    assert saved["step"] == 6


def test_generators_are_taken_before_the_forward_even_if_the_loader_drew_before_it(scope_of, training):
    model, optimizer = training
    scope = scope_of(model, optimizer, rng_every_n_steps=1).attach()
    path = scope.session.path
    losses = []
    for step in range(3):
        optimizer.zero_grad()
        torch.rand(10)  # a sampler
        model.eval()
        torch.rand(2)
        loss_of(model, batch_of(99))
        model.train()
        before = {k: v.clone() for k, v in model.state_dict().items()}
        loss = loss_of(model, batch_of(step))
        loss.backward()
        scope.step(loss)
        losses.append((before, loss.item()))
        optimizer.step()
    scope.detach()
    for step, (before, loss) in enumerate(losses):
        fresh, _ = make_training()
        fresh.load_state_dict(before)
        restore_rng_state(load_rng_state(path / "rng_states" / f"step_{step}.pkl"))
        assert loss_of(fresh, batch_of(step)).item() == loss


def test_a_file_that_is_no_rng_state_is_one_clear_error(tmp_path):
    (tmp_path / "bad.pkl").write_bytes(b"not a state")
    torch.save({"other": 1}, tmp_path / "other.pkl")
    for name in ("bad.pkl", "other.pkl"):
        with pytest.raises(ReadError, match="not an RNG state"):
            load_rng_state(tmp_path / name)
    with pytest.raises(ReadError, match="no such file"):
        load_rng_state(tmp_path / "none.pkl")
