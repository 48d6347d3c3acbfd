"""Which settings broken runs share: with the counts and p-values worked out by hand."""

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainscope.core.run import Run
from trainscope.diagnosis.traits import LEVEL, compare, settings_of


def runs(*configs):
    return [Run(f"r{i}", f"runs/r{i}", "csv", {}, config) for i, config in enumerate(configs)]


def test_a_threshold_that_separates_is_found_with_its_exact_p_value():
    members = runs(*({"lr": v} for v in (3e-3, 4e-3, 5e-3, 6e-3, 7e-3)))
    stable = runs(*({"lr": v} for v in (1e-4, 2e-4, 3e-4, 4e-4, 5e-4, 6e-4, 7e-4)))
    found = compare(members, stable)
    best = found.traits[0]
    assert (best.key, best.relation, best.value) == ("lr", "≥", 3e-3)
    assert (best.members, best.stable) == (5, 0)
    assert best.p_value == pytest.approx(1 / comb(12, 5))
    assert found.tried == 22  # eleven cuts, each from above and from below
    assert best.corrected == pytest.approx(22 / comb(12, 5))


def test_words_and_switches_are_compared_by_equality():
    members = runs(*({"opt": "sgd", "amp": True} for _ in range(6)))
    stable = runs(*({"opt": "adam", "amp": True} for _ in range(8)))
    (trait,) = compare(members, stable).traits
    assert (trait.key, trait.relation, trait.value, trait.members, trait.stable) == ("opt", "=", "sgd", 6, 0)
    assert trait.also == ()


def test_settings_that_split_alike_are_one_trait():
    members = runs(*({"opt": "sgd", "momentum": 0.9, "lr": 1} for _ in range(6)))
    stable = runs(*({"opt": "adam", "momentum": 0.0, "lr": 1} for _ in range(8)))
    found = compare(members, stable)
    (trait,) = found.traits
    assert trait.key == "opt"
    assert trait.also == ("momentum",)
    assert found.tried == 2


def test_too_few_runs_are_said_to_be_too_few():
    found = compare(runs({"lr": 1.0}, {"lr": 1.0}), runs({"lr": 0.1}, {"lr": 0.1}))
    assert found.traits == ()
    assert "too few runs: 2 against 2 stable" in found.reason
    assert "0.17" in found.reason  # 1 / C(4, 2)


def test_a_trait_that_chance_explains_is_no_trait():
    members = runs(*({"lr": i % 2} for i in range(20)))
    stable = runs(*({"lr": i % 2} for i in range(20)))
    found = compare(members, stable)
    assert found.traits == ()
    assert "no trait stands out" in found.reason


def test_no_configuration_no_stable_run_and_equal_configurations_have_each_their_answer():
    bare, told = runs({}, {}), runs({"lr": 1.0}, {"lr": 1.0})
    assert compare(bare, bare).reason == "none of these runs has a configuration"
    assert compare(bare, told).reason == "none of the 2 members has a configuration"
    assert compare(told, bare).reason == "none of the 2 stable runs has a configuration"
    assert compare(told, []).reason == "no stable run to compare with"
    assert compare(told, told).reason == "all runs have the same settings"


def test_outcomes_labels_and_the_environment_are_no_settings():
    run = Run(
        "a",
        "a",
        "csv",
        {},
        {"lr": 1, "seed": 3, "output_dir": "x", "summary.loss": 9, "env.torch": "2", "best_metric": 1},
    )
    assert settings_of(run) == {"lr": 1}


def test_a_setting_that_is_missing_is_neither_above_nor_below():
    members = runs(*({"a": 1, "clip": 1.0} for _ in range(8)))
    stable = runs(*({"a": 1} for _ in range(8)))
    (trait,) = compare(members, stable).traits
    assert (trait.key, trait.relation, trait.members, trait.stable) == ("clip", "=", 8, 0)


@pytest.mark.slow
def test_hundreds_of_random_settings_seldom_give_a_trait():
    import random

    draw, alarms = random.Random(0), 0
    for _ in range(20):
        configs = [{f"k{i}": draw.random() for i in range(200)} for _ in range(24)]
        alarms += bool(compare(runs(*configs[:8]), runs(*configs[8:])).traits)
    assert alarms <= 3  # 20 * LEVEL = 1 expected at most
    assert LEVEL == 0.05


@pytest.mark.slow
@given(st.lists(st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=3)), min_size=8))
def test_any_values_are_compared_without_an_error(values):
    half = len(values) // 2
    found = compare(runs(*({"k": v, "j": 1} for v in values[:half])), runs(*({"k": v, "j": 1} for v in values[half:])))
    assert found.traits or found.reason
    for trait in found.traits:
        assert 0 < trait.p_value <= trait.corrected <= LEVEL
