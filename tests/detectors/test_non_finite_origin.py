from __future__ import annotations

import numpy as np
import pytest

from .smoke_runs import STEPS, found, ones, single, smoke_run

ID = "non_finite_origin"


def broken(step: int, **series: object) -> dict[str, object]:
    """A loss that is not finite from a step on."""
    return {"train/loss": np.where(np.arange(STEPS) < step, 2.0, np.nan), **series}


def test_the_step_the_operation_and_the_parameters_are_named():
    run = smoke_run(
        {**broken(40), "smoke/weights_nonfinite": ones(41)},
        nonfinite_step=40,
        nonfinite_operation="LogBackward0 in MoE",
        nonfinite_gradients=["router.weight", "up.weight", "down.weight", "head.weight"],
    )
    one = single(ID, run)
    for part in ("step 40", "LogBackward0 in MoE", "router.weight", "and 1 more", "from step 41 on"):
        assert part in one.message


def test_a_step_that_the_gradient_scaler_refused_is_its_business():
    assert found(ID, smoke_run({"amp/step_skipped": ones(40, 41)}, nonfinite_step=40)) == []


def test_the_arithmetic_of_the_loss_is_told_from_the_model():
    run = smoke_run(
        broken(3),
        nonfinite_step=3,
        nonfinite_place="loss",
        nonfinite_operation="LogBackward0",
        nonfinite_module="head",
        nonfinite_output={"shape": [16, 10], "finite": True, "low": -3.25, "high": 4.0},
    )
    assert single(ID, run).message == (
        "A value stopped being finite at step 3 in the loss itself, after the finite output of module head "
        "(16x10, -3.25 to 4), first in LogBackward0."
    )
    assert single(ID, run).layer is None, "the output of that module was finite"


def test_the_first_module_is_named():
    run = smoke_run(
        broken(3),
        nonfinite_step=3,
        nonfinite_place="model",
        nonfinite_operation="ExpBackward0",
        nonfinite_module="block.mlp",
    )
    assert "first in ExpBackward0 at or after module block.mlp" in single(ID, run).message


def test_an_input_that_is_not_finite_is_said_to_be_it():
    assert (
        "the model's input is not finite"
        in single(ID, smoke_run(broken(3), nonfinite_step=3, nonfinite_place="input")).message
    )


@pytest.mark.parametrize(("names", "layer"), [(["a.weight", "b.weight"], None), (["b.weight"], "b.weight")])
def test_a_gradient_that_broke_while_the_loss_was_finite_is_not_explained_by_a_later_loss(names, layer):
    run = smoke_run(
        broken(41),
        nonfinite_step=40,
        nonfinite_place="model",
        nonfinite_operation="GeluBackward0",
        nonfinite_module="a",
        nonfinite_gradients=names,
        parameters=[["a.weight", [3], 1, "trained"], ["b.weight", [3], 2, "trained"]],
    )
    one = single(ID, run)
    assert "at step 40 in a gradient, while the loss of that step is finite" in one.message
    assert "Gelu" not in one.message
    assert (one.layer, one.metric) == (layer, "train/grad_norm")
