from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.detectors.base import Skipped

from .policy_runs import divergence, learner, rewards
from .runs import ROWS, at, falling, findings, judged, only, run_of


def test_a_blow_up_without_a_gain_is_a_warning_with_both_levels():
    run = run_of({"kl": divergence(blown=200), "train/reward": rewards(lost=200)})
    found = only("policy_kl", run)
    assert (found.severity, found.metric, found.end_step) == (Severity.WARNING, "kl", at(ROWS - 1))
    assert abs(found.start_step - at(200)) <= at(10)
    assert found.evidence["level"] == pytest.approx(37.5, rel=0.1)
    assert found.evidence["before"] == pytest.approx(0.025, rel=0.5)
    assert found.evidence["reward"] < found.evidence["reward_before"]


def test_a_blow_up_that_ends_is_told_with_its_end():
    kl = divergence(blown=200)
    kl[280:] /= 1000.0
    found = only("policy_kl", run_of({"kl": kl, "train/reward": rewards(lost=200)}))
    assert abs(found.end_step - at(279)) <= at(10)


def test_between_updates_a_tenth_of_a_nat_is_beyond_what_is_usual():
    kl = 0.2 * divergence(blown=250, times=100.0)
    assert only("policy_kl", run_of({"train/approx_kl": kl, "train/reward": rewards(lost=250)})).metric.endswith("kl")
    assert findings("policy_kl", run_of({"train/approx_kl": 0.01 * kl, "train/reward": rewards(lost=250)})) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_policy_that_begins_to_learn_and_leaves_its_reference_is_silent(seed):
    late = (
        0.2
        + 0.6 / (1.0 + np.exp(-(np.arange(ROWS) - 200) / 5.0))
        + 0.05 * np.random.default_rng(seed).normal(size=ROWS)
    )
    assert findings("policy_kl", run_of({"kl": divergence(seed=seed, blown=200), "train/reward": late})) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_divergence_that_grows_with_time_is_silent_though_the_reward_does_not_rise(seed):
    reward = rewards(seed=seed, gain=0.0)
    squared = 50.0 * divergence(seed=seed, spread=0.6) * np.linspace(0.0, 20.0, ROWS)
    assert squared.max() > 40.0
    assert findings("policy_kl", run_of({"objective/kl": squared, "train/reward": reward})) == []


@pytest.mark.parametrize("seed", range(20))
def test_single_batches_far_out_are_silent(seed):
    kl = divergence(seed=seed)
    kl[np.random.default_rng(seed).choice(ROWS, 40, replace=False)] *= 1e4
    assert findings("policy_kl", run_of({"kl": kl, "train/reward": rewards(seed=seed, gain=0.0)})) == []


def test_a_trained_policy_is_silent():
    assert findings("policy_kl", run_of(learner())) == []


def test_a_large_divergence_from_the_start_is_its_own_level():
    run = run_of({"objective/kl": 400.0 * divergence(), "train/reward": rewards(gain=0.0)})
    assert findings("policy_kl", run) == []


def test_without_a_reward_a_blow_up_is_information():
    found = only("policy_kl", run_of({"kl": divergence(blown=200), "policy_loss": falling()}))
    assert found.severity is Severity.INFO


def test_a_divergence_below_0_to_the_end_is_a_warning_from_there_on():
    kl = 0.3 + 0.5 * np.random.default_rng(0).standard_t(3, ROWS)
    kl[150:] -= 5.0
    found = only("policy_kl", run_of({"objective/kl": kl, "train/reward": rewards()}))
    assert (found.title, found.severity) == ("KL divergence is negative", Severity.WARNING)
    assert abs(found.start_step - at(150)) <= at(10)
    assert found.evidence["level"] == pytest.approx(-4.7, abs=0.1)


@pytest.mark.parametrize("seed", range(20))
def test_an_estimate_that_is_below_0_by_chance_is_silent(seed):
    rng = np.random.default_rng(seed)
    for kl in (1e-3 * rng.standard_t(3, ROWS), 0.1 + 2.0 * rng.standard_t(3, ROWS)):
        assert findings("policy_kl", run_of({"actor/ppo_kl": kl, "train/reward": rewards(seed=seed)})) == []


def test_how_far_below_0_is_a_parameter():
    run = run_of({"objective/kl": np.full(ROWS, -2.0), "train/reward": rewards()})
    assert len(findings("policy_kl", run)) == 1
    assert findings("policy_kl", run, below=3.0) == []


def test_a_divergence_that_was_negative_and_is_not_any_more_is_silent():
    kl = np.where(np.arange(ROWS) < 300, -5.0, 1.0)
    assert findings("policy_kl", run_of({"objective/kl": kl, "train/reward": rewards()})) == []


def test_the_bounds_are_parameters():
    run = run_of({"kl": divergence(blown=200), "train/reward": rewards(lost=200)})
    assert findings("policy_kl", run, factor=1e4) == []
    assert findings("policy_kl", run, reference=1e4) == []
    assert isinstance(judged("policy_kl", run, points=ROWS + 1), Skipped)


def test_a_loss_with_a_divergence_in_it_is_no_policy():
    run = run_of({"kl": divergence(blown=200), "train/loss": falling()})
    assert isinstance(judged("policy_kl", run), Skipped)
    assert isinstance(
        judged("policy_kl", run_of({"kl_coef": divergence(blown=200), "train/reward": rewards()})), Skipped
    )


def test_known_false_positive_a_penalty_under_the_name_of_the_divergence():
    assert len(findings("policy_kl", run_of({"kl": -50.0 * divergence(), "train/reward": rewards()}))) == 1
