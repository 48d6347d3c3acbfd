from __future__ import annotations

from .smoke_runs import found, ones, single, smoke_run

ID = "non_finite_origin"


def test_the_step_the_operation_and_the_parameters_are_named():
    run = smoke_run(
        {"smoke/weights_nonfinite": ones(41)},
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
        nonfinite_step=3, nonfinite_place="model", nonfinite_operation="ExpBackward0", nonfinite_module="block.mlp"
    )
    assert "first in ExpBackward0 at or after module block.mlp" in single(ID, run).message


def test_an_input_that_is_not_finite_is_said_to_be_it():
    assert "the model's input is not finite" in single(ID, smoke_run(nonfinite_step=3, nonfinite_place="input")).message
