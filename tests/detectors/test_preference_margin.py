from __future__ import annotations

import numpy as np
import pytest
from policies import preferences

from trainscope.core.finding import Severity
from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge
from trainscope.detectors.base import Skipped

from .policy_runs import coin
from .runs import ROWS, at, falling, findings, judged, only, run_of


def learns(seed: int = 0, by: float = 0.8) -> dict[str, np.ndarray]:
    return preferences(np.random.default_rng(seed), ROWS, by)


def test_a_coin_is_a_warning_with_its_loss_and_accuracy():
    found = only("preference_margin", run_of(coin()))
    assert (found.severity, found.title) == (Severity.WARNING, "No preference is learned")
    assert (found.start_step, found.end_step) == (at(ROWS // 4), at(ROWS - 1))
    assert found.evidence["loss"] == pytest.approx(np.log(2.0), abs=1e-3)
    assert found.evidence["accuracy"] == pytest.approx(0.5, abs=0.02)


def test_two_answers_that_are_the_same_to_the_policy_are_a_coin_too():
    same = {"train/loss": np.full(ROWS, 0.6931), "rewards/accuracies": np.zeros(ROWS), "rewards/chosen": np.zeros(ROWS)}
    assert only("preference_margin", run_of(same)).evidence["accuracy"] == 0.0


def test_the_flat_loss_of_a_coin_is_part_of_it():
    found = {f.detector: f.severity for f in judge(run_of(coin()), configure(Settings())).findings}
    assert found == {"preference_margin": Severity.WARNING, "plateau": Severity.INFO}


@pytest.mark.parametrize("seed", range(20))
def test_a_preference_that_is_learned_a_little_is_silent(seed):
    assert findings("preference_margin", run_of(learns(seed, 0.25))) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_small_beta_keeps_the_loss_at_ln_2_while_the_accuracy_tells(seed):
    log = learns(seed)
    margins = 0.01 * (0.5 + np.random.default_rng(seed).standard_t(3, (ROWS, 16)))
    log["train/loss"] = np.log1p(np.exp(-margins)).mean(axis=1)
    log["rewards/accuracies"] = (margins > 0.0).mean(axis=1)
    assert findings("preference_margin", run_of(log)) == []
    assert findings("plateau", run_of(log)) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_coin_that_begins_to_learn_in_the_second_half_is_silent(seed):
    log = coin(seed=seed)
    log["train/loss"][200:] -= np.linspace(0.0, 0.1, 200)
    log["rewards/accuracies"][200:] = 0.7
    assert findings("preference_margin", run_of(log)) == []


@pytest.mark.parametrize("seed", range(20))
def test_rewards_that_both_fall_are_normal(seed):
    log = learns(seed)
    log["rewards/chosen"] = -np.linspace(0.0, 20.0, ROWS)
    assert findings("preference_margin", run_of(log)) == []


def test_chosen_answers_that_become_unlikely_while_the_margin_grows_are_information():
    log = learns()
    log["logps/chosen"] = np.interp(np.arange(ROWS), (0, 100, 300, ROWS), (-100.0, -100.0, -200.0, -200.0))
    found = only("preference_margin", run_of(log))
    assert (found.severity, found.metric) == (Severity.INFO, "logps/chosen")
    assert abs(found.start_step - at(200)) <= at(5)
    assert (found.evidence["first"], found.evidence["last"]) == pytest.approx((-100.0, -200.0))


def test_a_likelihood_that_falls_without_a_margin_and_a_small_fall_are_silent():
    log = learns()
    log["logps/chosen"] = np.linspace(-100.0, -140.0, ROWS)
    assert findings("preference_margin", run_of(log)) == []
    log["logps/chosen"] = np.linspace(-100.0, -200.0, ROWS)
    log["rewards/margins"] = 0.1 * np.random.default_rng(0).normal(size=ROWS)
    assert findings("preference_margin", run_of(log)) == []


def test_a_loss_that_does_not_start_at_ln_2_and_a_short_run_are_silent():
    log = coin()
    assert findings("preference_margin", run_of({**log, "train/loss": 2.0 * log["train/loss"]})) == []
    assert findings("preference_margin", run_of(log), steps=10 * ROWS) == []


def test_the_distance_and_the_coin_are_parameters():
    assert findings("preference_margin", run_of(coin()), near=1e-7) == []
    assert findings("preference_margin", run_of(coin()), coin=0.4) == []
    run = run_of({**learns(), "logps/chosen": np.linspace(-100.0, -140.0, ROWS)})
    assert len(findings("preference_margin", run, fall=0.3)) == 1


def test_other_objectives_are_not_judged():
    assert isinstance(judged("preference_margin", run_of({"train/loss": falling()})), Skipped)
