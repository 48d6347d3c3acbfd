from __future__ import annotations

import pytest

from trainscope.core.metrics import tokens
from trainscope.core.policies import is_dead_share, is_entropy, is_group_spread, is_reference_kl, is_update_kl

UPDATE = ("train/approx_kl", "approxkl", "actor/ppo_kl", "policy/approxkl_avg", "ppo/policy/policykl")
REFERENCE = ("kl", "train/kl", "objective/kl", "actor/kl_loss")
ENTROPY = (
    "entropy",
    "actor/entropy",
    "policy/entropy_avg",
    "train/entropy_loss",
    "policy_entropy",
    "objective/entropy",
)
OTHER = (
    "kl_coef", "objective/kl_coef", "target_kl", "kl_penalty", "kl_beta", "entropy_bonus", "entropy_coef",
    "train/cross_entropy", "batch/token_entropy", "eval/kl", "loss", "reward", "smoke/router_load_entropy",
)  # fmt: skip


@pytest.mark.parametrize("name", UPDATE)
def test_a_divergence_between_updates_is_known_by_its_name(name):
    assert is_update_kl(tokens(name))
    assert not is_reference_kl(tokens(name))


@pytest.mark.parametrize("name", REFERENCE)
def test_any_other_divergence_is_one_to_the_reference(name):
    assert is_reference_kl(tokens(name))
    assert not is_update_kl(tokens(name))


@pytest.mark.parametrize("name", ENTROPY)
def test_the_entropy_of_a_policy_is_known_by_its_name(name):
    assert is_entropy(tokens(name))


@pytest.mark.parametrize("name", OTHER)
def test_settings_and_other_quantities_are_neither(name):
    words = tokens(name)
    assert [is_update_kl(words), is_reference_kl(words), is_entropy(words)] == [False] * 3


def test_the_two_ways_in_which_dead_groups_are_logged():
    assert is_dead_share(tokens("train/frac_reward_zero_std"))
    assert is_group_spread(tokens("reward_std"))
    assert not is_group_spread(tokens("rewards/format/std"))
