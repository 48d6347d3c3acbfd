from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity

from .smoke_runs import STEPS, found, ones, single, smoke_run

ID = "eval_mode"


def test_train_mode_lost_after_an_evaluation_is_an_error_from_that_step_on():
    run = smoke_run({"smoke/eval_mode_modules": ones(40, value=3.0)}, eval_mode_modules=["drop1", "bn"])
    one = single(ID, run)
    assert (one.severity, one.start_step) == (Severity.ERROR, 40)
    assert "drop1, bn" in one.message


def test_a_model_that_never_was_in_train_mode_is_a_warning():
    run = smoke_run({"smoke/eval_mode_modules": np.full(STEPS, 3.0), "smoke/train_mode_modules": np.zeros(STEPS)})
    assert single(ID, run).severity is Severity.WARNING
    assert single(ID, run).fixes[0].startswith("Call model.train() before the first step")


def test_frozen_batch_norms_from_the_start_are_an_information():
    assert single(ID, smoke_run({"smoke/eval_mode_modules": np.ones(STEPS)})).severity is Severity.INFO


@pytest.mark.parametrize(
    ("module", "frozen", "severity"),
    [
        ("body.norm", ["body.norm.weight", "body.fc.weight"], Severity.INFO),
        ("body.drop", ["body.norm.weight", "body.fc.weight"], Severity.INFO),
        ("body.drop", ["body.norm.weight"], Severity.WARNING),
        ("drop", ["body.norm.weight", "body.fc.weight"], Severity.WARNING),
        ("body.norm", [], Severity.WARNING),
    ],
)
def test_all_modules_in_eval_mode_are_an_information_only_in_parts_that_are_frozen(module, frozen, severity):
    names = ("body.norm.weight", "body.fc.weight", "head.weight")
    rows = [[name, [4], 0, "frozen" if name in frozen else "trained"] for name in names]
    series = {"smoke/eval_mode_modules": np.ones(STEPS), "smoke/train_mode_modules": np.zeros(STEPS)}
    run = smoke_run(series, eval_mode_modules=[module], frozen=frozen, parameters=rows)
    assert single(ID, run).severity is severity


def test_a_dry_run_before_the_loop_is_no_finding():
    assert found(ID, smoke_run({"smoke/eval_mode_modules": ones(0, 1, 3.0)})) == []
