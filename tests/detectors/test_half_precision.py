"""Halves at the ends of their range: the bottom by the grain of the gradients, the top where fp16 is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trainscope.detectors.half_precision import finest

from .smoke_runs import STEPS, LayersInMemory, found, single, skipped, smoke_run, with_layers

ID = "half_precision"


def gradients(scale: float, layers: int = 6) -> dict[str, np.ndarray]:
    """Return the largest entries of gradients that went through fp16 at a loss scale."""
    rng = np.random.default_rng(3)
    exact = {f"layer{i}": 0.05 * np.exp(0.3 * rng.standard_normal(STEPS)) for i in range(layers)}
    return {name: (value * scale).astype(np.float16).astype(np.float64) / scale for name, value in exact.items()}


def test_gradients_at_the_bottom_of_fp16_are_found():
    finding = single(ID, with_layers(grad_max_abs=gradients(2.0**-16)))
    assert finding.title == "Gradients underflow"
    assert finding.evidence["layers"] == 6
    assert finding.evidence["levels"] == pytest.approx(0.05 * 2.0**-16 / 2.0**-24, rel=0.3)


@pytest.mark.parametrize("scale", [1.0, 1024.0])
def test_halves_in_their_usual_range_pass(scale):
    assert found(ID, with_layers(grad_max_abs=gradients(scale))) == []


def test_numbers_of_single_precision_pass():
    exact = {name: value + 1e-9 for name, value in gradients(1024.0).items()}
    assert found(ID, with_layers(grad_max_abs={k: np.float64(np.float32(v * 1.00001)) for k, v in exact.items()})) == []


def test_one_layer_of_whole_numbers_is_a_loss_and_no_underflow():
    mixed = gradients(2.0**-16, 2) | {f"other{i}": v for i, v in enumerate(np.random.default_rng(0).random((5, STEPS)))}
    assert found(ID, with_layers(grad_max_abs=mixed)) == []


def test_the_finest_power_of_two_is_exact():
    assert finest(np.array([3.0, 8.0, 0.375, 2.0**-24])).tolist() == [1.0, 8.0, 0.125, 2.0**-24]


def activations(value: float, **series: object):
    layers = LayersInMemory({("mlp", "act_max_abs"): np.where(np.arange(STEPS) < 100, 10.0, value)})
    return replace(smoke_run(series), layers=layers)


def test_an_activation_near_the_largest_half_is_found_where_fp16_is_used():
    run = activations(20_000.0)
    assert skipped(ID, replace(run, config=dict(run.config) | {"smoke.autocast": '["bfloat16"]'})).startswith(
        "needs 20"
    )
    finding = single(ID, replace(run, config=dict(run.config) | {"smoke.autocast": '["float16"]'}))
    assert (finding.layer, finding.start_step) == ("mlp", 100)
    assert finding.evidence["headroom"] == pytest.approx(3.2752)
    assert single(ID, activations(20_000.0, **{"amp/grad_scale": np.full(STEPS, 1024.0)})).layer == "mlp"


def test_enough_headroom_passes():
    assert found(ID, activations(16_000.0, **{"amp/grad_scale": np.full(STEPS, 1024.0)})) == []


def test_a_run_without_layers_is_skipped():
    assert skipped(ID, replace(smoke_run(), layers=None)).startswith("needs gradients or activations")


def test_gradients_that_are_gone_altogether_are_found_where_fp16_is_used():
    layers = LayersInMemory({(name, "grad_max_abs"): np.zeros(STEPS) for name in "abcd"})
    run = replace(smoke_run({"amp/grad_scale": np.full(STEPS, 1.0)}), layers=layers)
    assert "exactly 0" in single(ID, run).message
    assert skipped(ID, replace(smoke_run(), layers=layers)).startswith("needs 20 steps")


def test_experts_without_tokens_are_no_underflow():
    gone = {(f"mlp.experts.{i}.weight", "grad_max_abs"): np.zeros(STEPS) for i in range(9)}
    sound = {(name, "grad_max_abs"): value for name, value in gradients(1024.0).items()}
    run = replace(smoke_run({"amp/grad_scale": np.full(STEPS, 1.0)}), layers=LayersInMemory(gone | sound))
    assert found(ID, run) == []
