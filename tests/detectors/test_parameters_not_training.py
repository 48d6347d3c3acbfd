from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity

from .smoke_runs import STEPS, found, single, skipped, smoke_run

ID = "parameters_not_training"


def test_a_parameter_that_no_optimizer_has_is_an_error_and_named():
    one = single(ID, smoke_run(not_in_optimizer=["ln.weight"], not_in_optimizer_used=["ln.weight"]))
    assert one.severity is Severity.ERROR
    assert "ln.weight" in one.message


def test_a_parameter_that_nothing_uses_is_an_information():
    assert single(ID, smoke_run(not_in_optimizer=["spare.weight"])).severity is Severity.INFO


def test_a_parameter_frozen_on_purpose_is_no_finding():
    assert found(ID, smoke_run(frozen=["emb.weight"], frozen_used=["emb.weight"])) == []


def test_a_frozen_parameter_may_be_in_the_optimizer():
    frozen = {name: ["aux.weight"] for name in ("frozen", "never_gradient", "never_moved")}
    assert found(ID, smoke_run(**frozen)) == []


def test_experts_without_tokens_are_an_information_and_no_error():
    names = ["blocks.0.moe.experts.5.up.weight", "blocks.0.moe.experts.5.down.weight"]
    one = single(ID, smoke_run(never_moved=names, never_gradient=names))
    assert (one.severity, one.metric) == (Severity.INFO, "parameters/idle_experts")


def test_nothing_is_judged_while_the_learning_rate_is_zero():
    run = smoke_run({"learning_rate": np.zeros(STEPS)}, never_moved=["a.weight"])
    assert "learning rate" in skipped(ID, run)


def test_gradients_of_exactly_zero_at_every_step_are_an_error():
    one = single(ID, smoke_run({"train/grad_norm_after_clip": np.zeros(STEPS)}))
    assert (one.severity, one.title) == (Severity.ERROR, "All gradients are 0")


def test_a_long_list_is_cut_and_counted():
    names = [f"layer{i}.weight" for i in range(9)]
    message = single(ID, smoke_run(never_moved=names)).message
    assert "layer4.weight and 4 more" in message
    assert "layer5" not in message


def adapters(half: str, other: str) -> list[list[object]]:
    """Return the parameters of one adapter, named as PEFT names them, with the roles of lora_A and lora_B."""
    names = {"q.base.weight": "frozen", "q.lora_A.default.weight": half, "q.lora_B.default.weight": other}
    return [[name, [8, 4], None, role] for name, role in names.items()]


@pytest.mark.parametrize("role", ["frozen", "left out"])
def test_a_lora_b_that_does_not_train_beside_a_lora_a_that_does_is_told_once(role):
    one = single(ID, smoke_run(parameters=adapters("trained", role), never_moved=["q.lora_A.default.weight"]))
    assert (one.severity, one.layer) == (Severity.ERROR, "q.lora_B.default.weight")
    assert "lora_A" in one.fixes[0]


@pytest.mark.parametrize(("half", "other"), [("trained", "trained"), ("frozen", "trained"), ("frozen", "frozen")])
def test_adapters_of_which_both_halves_train_or_rest_or_only_lora_a_rests_are_meant(half, other):
    assert found(ID, smoke_run(parameters=adapters(half, other))) == []
