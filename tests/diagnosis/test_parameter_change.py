from __future__ import annotations

from dataclasses import replace

import pytest
from smoke_runs import smoke_run

from trainscope.core.finding import Severity

from .runs import NAMES, layers, parameters, said

FACTS = {"model__trainable_numel": 1000, "model__numel": 1000}


def base(**facts: object):
    return replace(smoke_run(**{"parameters": parameters(), **FACTS, **facts}), layers=layers())


def change(**facts: object) -> list:
    return said(base(**facts), base()).get("parameter_change", [])


@pytest.mark.parametrize(
    ("fact", "why"),
    [
        ("frozen", "frozen"),
        ("not_in_optimizer", "in no optimizer"),
        ("never_gradient", "without a gradient"),
        ("never_moved", "never changed by a step"),
    ],
)
def test_a_tensor_that_learned_and_stands_still_now_is_an_error_with_its_reason(fact, why):
    (one,) = change(**{fact: ["fc1.weight"]})
    assert one.severity is Severity.ERROR
    assert why in one.message
    assert one.layer == "fc1.weight"


def test_what_stood_still_in_the_baseline_may_go_on_doing_so():
    still = {"frozen": ["fc1.weight"]}
    assert "parameter_change" not in said(base(**still), base(**still))


def test_a_renamed_model_in_another_order_has_no_finding():
    names = [f"model.{n.replace('fc', 'linear')}" for n in NAMES]
    moved = parameters(names)[::-1]
    run = replace(smoke_run(parameters=moved, **FACTS), layers=layers(names))
    assert said(run, base()) == {}


def test_a_tensor_renamed_and_frozen_at_once_is_found_under_its_new_name():
    names = [n.replace("fc1", "up") for n in NAMES]
    run = smoke_run(parameters=parameters(names), frozen=["up.weight"], **FACTS)
    (one,) = said(run, base())["parameter_change"]
    assert one.layer == "up.weight"


def test_a_new_frozen_and_unused_head_has_no_finding():
    more = [*parameters(), ["aux.weight", [7, 7], 5, "frozen"]]
    assert change(parameters=more, frozen=["aux.weight"], model__numel=1049) == []


def test_another_number_of_trainable_numbers_is_a_warning():
    (one,) = change(model__trainable_numel=1640, model__numel=1640)
    assert (one.severity, one.title) == (Severity.WARNING, "Another number of parameters")


def test_first_weights_of_another_scale_are_a_warning_and_another_seed_is_not():
    other = {"parameters": parameters(seed=500), "model__initial_hash": 99, **FACTS}
    assert "parameter_change" not in said(replace(smoke_run(**other), layers=layers(scale=1.02)), base())
    (one,) = said(replace(smoke_run(**other), layers=layers(scale=50.0)), base())["parameter_change"]
    assert one.evidence["ratio"] == pytest.approx(50.0)


def test_weight_decay_that_reaches_biases_and_norms_is_found():
    (one,) = said(base(decayed=1000, decayed_vectors=60), base(decayed=940, decayed_vectors=0))["parameter_change"]
    assert one.title == "Weight decay reaches other parameters"
    assert "1000 trained numbers, 60 of them in biases and norms; in the baseline on 940, 0" in one.message


def test_weight_decay_on_the_same_parameters_or_on_another_model_is_no_finding():
    assert change(decayed=940, decayed_vectors=0) == []
    larger = base(decayed=1100, model__trainable_numel=1200, model__numel=1200)
    found = said(larger, base(decayed=940)).get("parameter_change", [])
    assert [one.title for one in found] == ["Another number of parameters"]


def test_weight_decay_that_ends_with_the_learning_is_said_once():
    stopped = base(not_in_optimizer=["emb.weight"], decayed=300)
    assert [f.title for f in said(stopped, base(decayed=940))["parameter_change"]] == ["Parameters no longer learn"]
    beyond = base(not_in_optimizer=["emb.weight"], decayed=299)
    assert "Weight decay reaches other parameters" in {
        f.title for f in said(beyond, base(decayed=940))["parameter_change"]
    }


def test_large_numbers_of_parameters_are_written_out():
    large, larger = ({"model__trainable_numel": n, "model__numel": n} for n in (103_424, 105_472))
    (one,) = said(base(**large), base(**larger))["parameter_change"]
    assert one.message == "The model has 103424 trainable numbers, in the baseline 105472."
    (one,) = said(base(decayed=103_424), base(decayed=105_472))["parameter_change"]
    assert "acts on 103424 trained numbers" in one.message


def test_parameters_of_another_type_are_found_unless_the_device_is_another():
    (one,) = said(base(env__dtype="bfloat16"), base(env__dtype="float32"))["parameter_change"]
    assert one.message == "Most parameters are bfloat16, in the baseline float32."
    other = base(env__dtype="bfloat16", env__device="cuda A"), base(env__dtype="float32", env__device="cpu")
    assert "parameter_change" not in said(*other)
