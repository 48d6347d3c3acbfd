from __future__ import annotations

import numpy as np
import pytest
from policies import Task, trained
from policies import run_of as named_run

from trainscope.core.finding import Severity
from trainscope.core.metrics import canonical_names, tokens
from trainscope.core.policies import Gap, gap
from trainscope.detectors.base import Skipped

from .policy_runs import gaps, rewards
from .runs import ROWS, at, findings, judged, only, run_of

ID = "rollout_mismatch"
SPELLINGS = (
    "sampling/sampling_logp_difference/mean",
    "train/train_rollout_logprob_abs_diff",
    "debug/vllm_vs_local_logprob_diff_mean",
)
KINDS = {
    "training/rollout_probs_diff_mean": Gap.PROBABILITY,
    "train/token_mult_prob_error": Gap.FACTOR,
    "rollout_corr/kl": Gap.DIVERGENCE,
    "rollout_correction/k3_kl": Gap.DIVERGENCE,
    "train/gen_kl_error": Gap.DIVERGENCE,
    "vllm_kl": Gap.DIVERGENCE,
    "mismatch_kl/all/mean": Gap.DIVERGENCE,
    "sampling/importance_sampling_ratio/mean": Gap.RATIO,
    "rollout_corr/rollout_is_mean": Gap.RATIO,
    "train/sampling_importance_ratio": Gap.RATIO,
}
OTHERS = (
    "training/rollout_probs_diff_max", "sampling/sampling_logp_difference/max",
    "rollout_corr/rollout_is_eff_sample_size", "policy/rollout_train_prob_diff_mean",
    "kl", "actor/ppo_kl", "objective/kl", "rollout/ep_rew_mean",
)  # fmt: skip


@pytest.mark.parametrize("raw", SPELLINGS)
def test_each_trainers_name_of_the_difference_has_one_canonical_name(raw):
    assert canonical_names((raw, "reward"))[raw] == "train/rollout_logprob_difference"
    assert gap(tokens("train/rollout_logprob_difference")) is Gap.LOG_PROBABILITY


@pytest.mark.parametrize(("raw", "kind"), KINDS.items())
def test_other_distances_keep_their_name_and_unit(raw, kind):
    assert canonical_names((raw, "reward"))[raw] == raw
    assert gap(tokens(raw)) is kind


@pytest.mark.parametrize("raw", OTHERS)
def test_largest_values_and_other_divergences_are_no_such_distance(raw):
    assert gap(tokens(raw)) is None


def test_a_distance_beyond_the_limit_from_the_start_is_told_with_its_level():
    found = only(ID, run_of({"train/rollout_logprob_difference": gaps(level=0.3), "train/reward": rewards()}))
    assert (found.severity, found.start_step, found.end_step) == (Severity.WARNING, at(0), at(ROWS - 1))
    assert found.evidence["level"] == pytest.approx(0.3, rel=0.1)
    assert found.evidence["beyond"] == pytest.approx(3.0, rel=0.1)
    assert "before" not in found.evidence


def test_a_distance_that_grew_is_told_below_the_limit_with_what_it_was():
    run = run_of({"train/rollout_logprob_difference": gaps(since=300, times=5.0), "train/reward": rewards()})
    found = only(ID, run)
    assert abs(found.start_step - at(300)) <= at(10)
    assert found.evidence["before"] == pytest.approx(0.012, rel=0.1)
    assert found.evidence["level"] == pytest.approx(0.06, rel=0.1)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("training/rollout_probs_diff_mean", 0.012, 0.08),
        ("train/token_mult_prob_error", 1.015, 1.3),
        ("rollout_corr/kl", 0.002, 0.3),
        ("sampling/importance_sampling_ratio/mean", 1.02, 0.03),
        ("rollout_corr/rollout_is_mean", 0.98, 5.0),
    ],
)
def test_levels_that_trainers_report_as_good_are_silent_and_bad_ones_are_not(name, good, bad):
    noise = np.exp(0.003 * np.random.default_rng(0).normal(size=ROWS))
    assert findings(ID, run_of({name: good * noise, "train/reward": rewards()})) == []
    assert only(ID, run_of({name: bad * noise, "train/reward": rewards()})).metric == name


def test_growth_at_a_learning_rate_of_zero_is_an_error_however_small():
    grows = gaps(level=0.004) * np.linspace(1.0, 3.0, ROWS)
    log = {"train/rollout_logprob_difference": grows, "train/reward": rewards(gain=0.0)}
    found = only(ID, run_of({**log, "learning_rate": np.zeros(ROWS)}))
    assert (found.severity, found.start_step) == (Severity.ERROR, at(0))
    assert "while the learning rate is 0" in found.message
    assert findings(ID, run_of({**log, "learning_rate": np.full(ROWS, 1e-6)})) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_distance_that_stays_at_a_learning_rate_of_zero_is_silent(seed):
    log = {"train/rollout_logprob_difference": gaps(seed=seed), "train/reward": rewards(gain=0.0)}
    assert findings(ID, run_of({**log, "learning_rate": np.zeros(ROWS)})) == []


@pytest.mark.parametrize("seed", range(10))
def test_a_sampler_that_gets_no_new_weights_is_found_in_a_policy_that_is_really_trained(seed):
    log = trained(np.random.default_rng(seed), Task(ROWS, 0.3, 0.2, 0.02, stale=100))
    found = only(ID, named_run(log))
    assert found.severity is Severity.WARNING
    assert found.start_step > 100


def test_known_miss_single_steps_far_out_are_silent():
    value = gaps()
    value[::20] = 3.0
    assert findings(ID, run_of({"train/rollout_logprob_difference": value, "train/reward": rewards()})) == []


def test_known_false_positive_a_run_that_is_off_policy_on_purpose():
    assert only(ID, run_of({"rollout_corr/kl": gaps(level=0.4), "train/reward": rewards()}))


def test_of_several_distances_one_finding_counts_the_others():
    log = {"train/rollout_logprob_difference": gaps(level=0.3), "rollout_corr/kl": gaps(level=0.2)}
    assert "One more in the log says so" in only(ID, run_of({**log, "train/reward": rewards()})).message


def test_a_log_without_a_distance_is_not_judged():
    assert isinstance(judged(ID, run_of({"train/reward": rewards(), "kl": gaps()})), Skipped)
