from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.core.metrics import canonical_names
from trainscope.detectors.base import Skipped

from .runs import ROWS, at, falling, findings, judged, only, returns, run_of

LEARNED = ((0, 0.0), (180, 500.0), (250, 500.0))


def collapse(*levels: tuple[int, float], **other: float) -> list:
    return findings("reward_collapse", run_of({"train/reward": returns(*levels, **other)}))


def test_a_reward_that_is_lost_to_the_end_is_an_error_from_its_fall_on():
    found = only("reward_collapse", run_of({"train/reward": returns(*LEARNED, (251, 0.0))}))
    assert found.severity is Severity.ERROR
    assert abs(found.start_step - at(251)) <= at(20)
    assert found.end_step == at(ROWS - 1)
    assert found.evidence["best"] == pytest.approx(500.0, abs=40.0)
    assert found.evidence["lost"] >= 0.9


def test_a_part_that_is_lost_is_a_warning_and_half_of_it_is_left_alone():
    (found,) = collapse(*LEARNED, (251, 110.0))
    assert found.severity is Severity.WARNING
    assert collapse(*LEARNED, (251, 250.0)) == []


def test_a_dip_that_is_made_good_is_left_alone():
    assert collapse(*LEARNED, (251, 0.0), (300, 0.0), (340, 450.0)) == []


@pytest.mark.parametrize("seed", range(20))
def test_noise_without_learning_and_learning_without_a_fall_are_silent(seed):
    assert collapse((0, 0.0), (ROWS - 1, 0.0), seed=seed) == []
    assert collapse((0, -100.0), (200, 500.0), (ROWS - 1, 520.0), seed=seed, sd=200.0) == []


def test_single_bad_episodes_are_no_collapse():
    x = returns(*LEARNED, (ROWS - 1, 520.0))
    x[-40::4] = -300.0
    assert findings("reward_collapse", run_of({"train/reward": x})) == []


def test_the_unit_and_the_zero_of_a_reward_say_nothing():
    x = returns(*LEARNED, (251, 0.0))
    usual = only("reward_collapse", run_of({"train/reward": x}))
    moved = only("reward_collapse", run_of({"train/reward": 1e-4 * (x - 5000.0)}))
    assert (moved.start_step, moved.severity) == (usual.start_step, usual.severity)


def test_preference_tuning_short_logs_and_runs_without_a_reward_are_not_judged():
    x = returns(*LEARNED, (251, 0.0))
    assert isinstance(judged("reward_collapse", run_of({"rewards/chosen": x, "train/loss": falling()})), Skipped)
    assert isinstance(judged("reward_collapse", run_of({"train/reward": x[:60]})), Skipped)
    assert isinstance(judged("reward_collapse", run_of({"train/loss": falling()})), Skipped)


def test_the_share_and_the_noise_are_parameters():
    run = run_of({"train/reward": returns(*LEARNED, (251, 250.0))})
    assert len(findings("reward_collapse", run, lost=0.4)) == 1
    assert findings("reward_collapse", run, lost=0.4, sigmas=1e6) == []


def test_known_false_positive_an_environment_that_is_made_harder_on_purpose():
    harder = np.where(np.arange(ROWS) < 200, 1.0, 0.1) * returns((0, 0.0), (150, 500.0), sd=20.0)
    assert len(findings("reward_collapse", run_of({"train/reward": harder}))) == 1


def test_a_score_that_stays_is_no_collapse_though_the_penalty_eats_the_reward():
    score = returns((0, 0.0), (200, 1000.0), (ROWS - 1, 1000.0))
    log = {"objective/rlhf_reward": score - 60.0 * np.linspace(0.0, 2.0, ROWS) ** 4, "objective/scores": score}
    names = canonical_names(tuple(log))
    assert findings("reward_collapse", run_of({names[name]: v for name, v in log.items()})) == []
    assert only("reward_collapse", run_of({"objective/rlhf_reward": log["objective/rlhf_reward"]}))
