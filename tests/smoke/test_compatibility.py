"""Every kind of training gives bit for bit the same losses, weights and random numbers when it is recorded."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable

import numpy as np
import pytest

from .conftest import Record, Recorded, numbers, script

pytestmark = pytest.mark.slow


@pytest.fixture
def same(once: Record, plain: Callable[..., str]) -> Callable[..., Recorded]:
    """Check that recording changes nothing and sees every step; return the recording."""

    def check(command: tuple[str, ...], *, steps: int = 6) -> Recorded:
        recorded = once(*command)
        expected = numbers(plain(command))
        assert expected
        assert expected[-1].startswith("end ")
        assert numbers(recorded.output) == expected
        assert recorded.smoke.ended == "script"
        assert recorded.smoke.faults == ()
        assert [run.last_step for run in recorded.runs] == [steps - 1] * len(recorded.runs)
        return recorded

    return check


def test_a_plain_loop(same):
    run = same(script("plain")).runs[0]
    assert run.get("smoke/clip_calls").value.tolist() == [1] * 6
    assert run.get("train/grad_norm_after_clip").value.max() <= 1 + 1e-6
    assert run.get("smoke/scheduler_steps").value.tolist() == [0, 1, 1, 1, 1, 1]
    assert run.config["smoke.scheduler0.class"] == "CosineAnnealingLR"


def test_the_recorded_loss_is_the_loss(same):
    recorded = same(script("plain"))
    printed = [float.fromhex(line.split()[1]) for line in numbers(recorded.output)[:-1]]
    assert recorded.runs[0].get("train/loss").value.tolist() == printed


def test_gradient_accumulation(same):
    recorded = same(script("accumulation"))
    run = recorded.runs[0]
    printed = np.array([float.fromhex(line.split()[1]) for line in numbers(recorded.output)[:-1]])
    assert run.get("smoke/backward_calls").value.tolist() == [4] * 6
    assert run.get("smoke/stale_gradients").value.tolist() == [0] * 6
    # Each is a quarter of the micro-batch's loss, so that their sum is its mean.
    np.testing.assert_allclose(run.get("train/loss").value, printed.reshape(6, 4).sum(1), rtol=1e-12)


def test_automatic_mixed_precision(same):
    same(script("autocast"))


def test_a_gradient_scaler_that_skips_a_step(same):
    run = same(script("grad_scaler")).runs[0]
    assert run.get("amp/step_skipped").value.tolist() == [0, 0, 0, 1, 0, 0]
    assert run.get("amp/grad_scale").value.tolist() == [1024, 1024, 1024, 1024, 512, 512]
    assert run.get("smoke/clip_scaled").value.max() == 0
    assert run.config["smoke.nonfinite_step"] == 3  # the loss itself


def test_a_gradient_scaler_with_a_fused_optimizer(same):
    run = same(script("grad_scaler", "fused")).runs[0]
    assert run.get("amp/step_skipped").value.tolist() == [0, 0, 0, 1, 0, 0]
    norms = run.get("train/grad_norm").value
    assert norms[[0, 1, 2, 4, 5]].max() < 50  # without the loss scale of 1024


def test_a_closure(same):
    run = same(script("closure")).runs[0]
    assert run.get("smoke/backward_calls").value.max() > 1
    assert run.get("smoke/zero_grad_after_backward").value.max() == 0


def test_several_optimizers(same):
    run = same(script("two_optimizers")).runs[0]
    assert run.get("smoke/optimizer_steps").value.tolist() == [2] * 6
    assert run.get("smoke/stale_gradients").value.tolist() == [0] * 6
    assert run.config["smoke.optimizers"] == 2
    assert len(run.layers.layers()) == 8


@pytest.mark.parametrize("name", ["compiled", "compiled_loss"])
def test_a_compiled_model_keeps_its_one_graph(same, name):
    recorded = same(script(name))
    assert "graphs 1 breaks 0" in recorded.output
    assert recorded.runs[0].config["smoke.compiled"] is True


def test_activation_checkpointing(same):
    run = same(script("checkpointing")).runs[0]
    assert run.get("smoke/backward_calls").value.tolist() == [1] * 6
    assert run.get("smoke/train_mode_modules").value.tolist() == [2] * 6


def test_tied_weights(same):
    run = same(script("tied")).runs[0]
    assert run.layers.layers() == ("embed.weight", "mix.weight", "mix.bias")
    assert run.config["smoke.model.tied"] == 1


@pytest.mark.parametrize("kind", ["foreach", "fused", "for-loop", "inherited", "lookahead"])
def test_every_kind_of_optimizer_steps_once_a_step(same, kind):
    run = same(script("optimizer_kinds", kind)).runs[0]
    assert run.get("optimizer/update_norm").value.min() > 0
    assert run.config["smoke.never_moved"] == "[]"


def test_a_second_model_whose_parameters_have_no_shapes_yet(same):
    same(script("lazy"))


def test_sparse_gradients(same):
    run = same(script("sparse")).runs[0]
    assert run.get("train/grad_norm").value.min() > 0


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_data_loader_workers(same, context):
    run = same(script("workers", context)).runs[0]
    assert run.config["smoke.ranks"] == 1
    assert len(set(run.get("smoke/data_order_hash").value)) == 6


def test_the_hugging_face_trainer(same):
    pytest.importorskip("transformers")
    run = same(script("hugging_face")).runs[0]
    assert run.get("smoke/backward_calls").value.tolist() == [2] * 6
    assert run.get("smoke/eval_mode_modules").value.max() == 0


def test_accelerate(same):
    pytest.importorskip("accelerate")
    run = same(script("accelerated")).runs[0]
    assert run.get("smoke/backward_calls").value.tolist() == [2] * 6


@pytest.mark.parametrize("mode", ["automatic", "manual"])
def test_lightning(same, mode):
    if importlib.util.find_spec("lightning") is None:
        pytest.skip("lightning is not installed")
    run = same(script("lightning_module", mode)).runs[0]
    assert run.layers.layers()[0] == "model.fc1.weight"


@pytest.mark.parametrize("kind", ["ddp", "fsdp2"])
def test_two_ranks(same, kind):
    launch = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone")
    recorded = same((*launch, *script("distributed", kind)[1:]))
    first, second = recorded.runs
    assert [run.config["smoke.rank"] for run in recorded.runs] == [0, 1]
    assert first.config["smoke.sharded"] is (kind == "fsdp2")
    assert not np.array_equal(first.get("train/loss").value, second.get("train/loss").value)
    if kind == "ddp":
        assert first.get("smoke/rank_gradient_spread").value.max() == 0
        assert first.get("smoke/rank_weight_spread").value.max() == 0
    else:
        assert first.get("smoke/rank_weight_spread") is None


def test_a_model_that_is_copied_pickled_and_scripted(same):
    run = same(script("copied")).runs[0]
    assert run.shares.blocks() == ("router",)
    assert "experts.2.fc1.weight" in run.config["smoke.frozen_used"]
