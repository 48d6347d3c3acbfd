from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.core.metrics import tokens
from trainscope.core.policies import is_length, is_truncated_share
from trainscope.detectors.base import Skipped

from .policy_runs import flat, rewards
from .runs import ROWS, findings, judged, only, run_of

ID = "reward_hacking"
LONGER = np.geomspace(200.0, 900.0, ROWS)


def held_out(seed: int = 0, gain: float = -0.1) -> np.ndarray:
    return 0.4 + gain * np.linspace(0.0, 1.0, 20) + 0.02 * np.random.default_rng(seed).normal(size=20)


def test_lengths_and_truncated_shares_are_known_by_the_names_of_each_trainer():
    lengths = ("completions/mean_length", "completion_length", "response_length/mean", "rollout/response_len/mean")
    shares = ("completions/clipped_ratio", "response_length/clip_ratio", "rollout/truncated_ratio", "truncation_rate")
    assert all(is_length(tokens(name)) and not is_truncated_share(tokens(name)) for name in lengths)
    assert all(is_truncated_share(tokens(name)) and not is_length(tokens(name)) for name in shares)
    assert not is_length(tokens("completions/max_length"))


def test_a_reward_that_rises_with_the_length_alone_is_an_information_with_all_levels():
    found = only(ID, run_of({"response_length/mean": LONGER, "val/accuracy": held_out(), "train/reward": rewards()}))
    assert found.severity is Severity.INFO
    assert found.evidence["last"] > 2.0 * found.evidence["first"]
    assert found.evidence["reward"] > found.evidence["reward_first"]
    assert "val/accuracy does not rise" in found.message


@pytest.mark.parametrize("seed", range(20))
def test_a_held_out_score_that_rises_makes_longer_answers_good(seed):
    log = {"response_length/mean": LONGER, "val/accuracy": held_out(seed, 0.2), "train/reward": rewards(seed=seed)}
    assert findings(ID, run_of(log)) == []


def test_without_a_held_out_score_nothing_is_judged():
    assert isinstance(judged(ID, run_of({"response_length/mean": LONGER, "train/reward": rewards()})), Skipped)


def test_answers_that_are_cut_off_more_often_count_from_a_tenth_on():
    log = {"val/accuracy": held_out(), "train/reward": rewards()}
    found = only(ID, run_of({**log, "completions/clipped_ratio": np.linspace(0.02, 0.5, ROWS)}))
    assert "completions/clipped_ratio went from" in found.message
    assert findings(ID, run_of({**log, "completions/clipped_ratio": np.linspace(0.002, 0.05, ROWS)})) == []


def test_a_reward_that_does_not_rise_is_silent():
    assert (
        findings(ID, run_of({"response_length/mean": LONGER, "val/reward": held_out(), "train/reward": flat()})) == []
    )


def test_known_false_positive_a_held_out_set_that_was_solved_before():
    solved = np.full(20, 1.0)
    assert only(ID, run_of({"response_length/mean": LONGER, "val/accuracy": solved, "train/reward": rewards()}))


def test_a_log_without_a_length_is_not_judged():
    assert isinstance(judged(ID, run_of({"train/reward": rewards()})), Skipped)
