from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.core.metrics import tokens
from trainscope.core.policies import is_clip_share, is_ratio
from trainscope.detectors.base import Skipped

from .policy_runs import flat, gaps, rewards
from .runs import ROWS, at, findings, judged, only, run_of

ID = "policy_ratio"
SHARES = (
    "train/clip_fraction", "actor/pg_clipfrac", "clip_ratio/region_mean", "policy/clipfrac_avg", "losses/clipfrac",
    "ppo_clip_ratio",
)  # fmt: skip
RATIOS = ("val/ratio", "train/probs_ratio", "ppo/policy/ratio")
OTHERS = (
    "completions/clipped_ratio", "response_length/clip_ratio", "val/clipfrac", "value/clipfrac",
    "actor/pg_clipfrac_lower", "clip_ratio/high_max", "probs_ratio_max", "probs_ratio_clamped", "train/clip_range",
    "val/ratio_var",
    "sampling/importance_sampling_ratio/mean",
)  # fmt: skip


def test_shares_and_ratios_are_known_by_the_names_of_each_trainer():
    assert all(is_clip_share(tokens(name)) and not is_ratio(tokens(name)) for name in SHARES)
    assert all(is_ratio(tokens(name)) and not is_clip_share(tokens(name)) for name in RATIOS)
    assert [name for name in OTHERS if is_clip_share(tokens(name)) or is_ratio(tokens(name))] == []


def test_a_fraction_that_rises_as_the_reward_falls_is_a_warning_with_both_levels():
    run = run_of({"train/clip_fraction": gaps(level=0.03, since=250), "train/reward": rewards(lost=250)})
    found = only(ID, run)
    assert (found.severity, found.title) == (Severity.WARNING, "Too much is clipped")
    assert abs(found.start_step - at(250)) <= at(10)
    assert found.evidence["level"] == pytest.approx(0.6, rel=0.1)
    assert "falls with it" in found.message


@pytest.mark.parametrize("level", [0.1, 0.4, 2.5, 1000.0])
def test_a_ratio_far_from_one_in_a_run_that_learns_nothing_is_a_warning(level):
    found = only(ID, run_of({"val/ratio": gaps(level=level), "train/reward": flat(seed=1)}))
    assert (found.severity, found.start_step, found.title) == (Severity.WARNING, at(0), "Policy ratio far from 1")
    assert "no higher at the end" in found.message


@pytest.mark.parametrize("seed", range(20))
def test_a_high_fraction_in_a_run_that_learns_is_an_information(seed):
    log = {"train/clip_fraction": gaps(seed=seed, level=0.4), "train/reward": rewards(seed=seed)}
    assert only(ID, run_of(log)).severity is Severity.INFO


@pytest.mark.parametrize("seed", range(20))
def test_usual_fractions_and_ratios_are_silent_though_nothing_is_learned(seed):
    log = {"train/clip_fraction": gaps(seed=seed, level=0.2), "val/ratio": gaps(seed=seed + 50, level=1.0)}
    assert findings(ID, run_of({**log, "train/reward": flat(seed=seed)})) == []


def test_single_updates_that_are_clipped_are_silent():
    value = gaps(level=0.05)
    value[::10] = 0.9
    assert findings(ID, run_of({"train/clip_fraction": value, "train/reward": flat()})) == []


def test_known_false_positive_a_reward_that_a_curriculum_lowers():
    run = run_of({"train/clip_fraction": gaps(level=0.4, since=0, times=1.0), "train/reward": -rewards()})
    assert only(ID, run).severity is Severity.WARNING


def test_a_log_without_a_ratio_is_not_judged():
    assert isinstance(judged(ID, run_of({"train/reward": np.zeros(ROWS)})), Skipped)
