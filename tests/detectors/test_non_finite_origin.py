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
