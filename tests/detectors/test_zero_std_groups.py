from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.detectors.base import Skipped

from .policy_runs import learner, rewards
from .runs import ROWS, at, findings, judged, only, run_of

NEVER = np.zeros(ROWS)


def dead(share: float = 0.97, seed: int = 0, since: int = 0) -> np.ndarray:
    """Return shares of 32 groups without spread: 0.4 before the index `since`, then `share`."""
    rng = np.random.default_rng(seed)
    return rng.binomial(32, np.where(np.arange(ROWS) < since, 0.4, share)) / 32.0


def groups(shares: np.ndarray, reward: np.ndarray, **params: float) -> list:
    return findings("zero_std_groups", run_of({"frac_reward_zero_std": shares, "train/reward": reward}), **params)


def test_groups_that_never_differ_and_are_never_rewarded_are_a_warning():
    (found,) = groups(dead(), NEVER)
    assert (found.severity, found.start_step, found.end_step) == (Severity.WARNING, at(0), at(ROWS - 1))
    assert found.evidence["share"] == pytest.approx(0.97, abs=0.005)


def test_groups_that_die_in_the_run_are_a_warning_from_there_on():
    (found,) = groups(dead(since=150), np.where(np.arange(ROWS) < 150, 0.4, 0.0))
    assert found.severity is Severity.WARNING
    assert abs(found.start_step - at(150)) <= at(20)


def test_a_spread_of_exactly_0_says_the_same():
    found = only("zero_std_groups", run_of({"reward_std": NEVER, "train/reward": NEVER - 1.0}))
    assert (found.severity, found.metric) == (Severity.WARNING, "reward_std")
    small = run_of({"reward_std": NEVER + 1e-6, "train/reward": NEVER})
    assert findings("zero_std_groups", small) == []


@pytest.mark.parametrize("seed", range(10))
def test_a_trained_policy_that_solves_its_prompts_is_at_most_information(seed):
    log = learner(seed=seed, n=1000, rate=1.0, hard=0.5)
    assert np.mean(log["frac_reward_zero_std"][500:]) > 0.9
    found = findings("zero_std_groups", run_of(log))
    assert [f.severity for f in found] == [Severity.INFO]


def test_a_reward_at_its_maximum_is_information():
    assert groups(dead(), np.full(ROWS, 1.0))[0].severity is Severity.INFO


@pytest.mark.parametrize("seed", range(20))
def test_hard_prompts_a_late_start_and_a_short_end_are_silent(seed):
    finds_it = dead(seed=seed)
    finds_it[250:] = 0.5
    for share in (dead(0.8, seed), finds_it, dead(seed=seed, since=300)):
        assert groups(share, rewards(seed=seed, gain=0.0)) == []


def test_the_share_of_groups_and_of_the_run_are_parameters():
    assert groups(dead(0.8), NEVER, dead=0.7) != []
    assert groups(dead(since=300), NEVER, share=0.2) != []
    assert groups(dead(since=150), NEVER, share=0.7) == []


def test_runs_without_groups_are_not_judged():
    assert isinstance(judged("zero_std_groups", run_of({"train/reward": NEVER})), Skipped)
    assert isinstance(
        judged("zero_std_groups", run_of({"frac_reward_zero_std": dead(), "rewards/chosen": NEVER})), Skipped
    )


def test_known_miss_groups_that_always_get_the_same_part_of_a_reward():
    assert groups(dead(), np.full(ROWS, 0.1))[0].severity is Severity.INFO
