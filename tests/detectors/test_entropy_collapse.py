from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.detectors.base import Skipped

from .policy_runs import certain, flat, learner, rewards
from .runs import ROWS, at, falling, findings, judged, only, run_of


def collapse(entropy: np.ndarray, reward: np.ndarray, name: str = "entropy", **params: float) -> list:
    return findings("entropy_collapse", run_of({name: entropy, "train/reward": reward}), **params)


def test_an_entropy_that_is_gone_for_nothing_is_a_warning_from_there_on():
    (found,) = collapse(certain(), flat())
    assert (found.severity, found.end_step) == (Severity.WARNING, at(ROWS - 1))
    # 0.05 of the first level, 0.79 in the median of the first two blocks, is reached at the 28th of 40 points.
    assert abs(found.start_step - at(28)) <= at(10)
    assert found.evidence["level"] == pytest.approx(0.01, rel=0.1)
    assert found.evidence["reward"] == pytest.approx(0.2, abs=0.02)


def test_a_policy_that_learned_first_has_used_its_entropy_up_and_that_is_information():
    (found,) = collapse(certain(), rewards())
    assert (found.severity, found.title) == (Severity.INFO, "Entropy is used up")


def test_a_reward_at_its_maximum_from_the_start_is_information():
    reward = np.minimum(1.0, 0.99 + 0.01 * np.random.default_rng(0).normal(size=ROWS))
    (found,) = collapse(certain(), reward)
    assert found.severity is Severity.INFO


def test_a_policy_driven_to_certainty_by_a_wrong_sign_is_found_in_a_real_training():
    log = learner(seed=1, rate=1.0, hard=1.0, entropy=-4.0)
    found = only("entropy_collapse", run_of(log))
    assert found.severity is Severity.WARNING
    assert found.start_step <= at(ROWS // 4)


@pytest.mark.parametrize("seed", range(10))
def test_a_trained_policy_gets_no_warning(seed):
    found = findings("entropy_collapse", run_of(learner(seed=seed)))
    assert all(f.severity is Severity.INFO for f in found)


@pytest.mark.parametrize("seed", range(20))
def test_an_entropy_that_falls_to_a_tenth_or_late_or_comes_back_is_silent(seed):
    back = certain(seed=seed)
    back[300:] = 0.5
    late = certain(seed=seed, gone=350)
    for entropy in (certain(seed=seed, left=0.1), back, late):
        assert collapse(entropy, flat(seed=seed)) == []


def test_an_entropy_loss_is_read_with_its_sign():
    assert len(collapse(-certain(), flat(), "train/entropy_loss")) == 1
    assert isinstance(judged("entropy_collapse", run_of({"entropy": -certain(), "train/reward": flat()})), Skipped)


def test_a_continuous_policy_has_no_floor():
    falls = np.linspace(11.0, -4.0, ROWS)
    assert isinstance(judged("entropy_collapse", run_of({"entropy": falls, "train/reward": flat()})), Skipped)
    run = run_of({"entropy": certain(), "train/reward": flat(), "train/std": certain()})
    assert isinstance(judged("entropy_collapse", run), Skipped)
    run = run_of({"entropy": certain(), "train/reward": flat(), "reward_std": certain()})
    assert len(findings("entropy_collapse", run)) == 1


def test_what_is_left_is_a_parameter():
    assert collapse(certain(left=0.1), flat(), left=0.2) != []
    assert collapse(certain(), flat(), left=0.001) == []


def test_runs_without_a_reward_are_not_judged():
    assert isinstance(judged("entropy_collapse", run_of({"entropy": certain(), "train/loss": falling()})), Skipped)


def test_known_false_positive_a_task_that_is_solved_from_the_start_below_0():
    assert collapse(certain(), np.full(ROWS, -1.0))[0].severity is Severity.WARNING
