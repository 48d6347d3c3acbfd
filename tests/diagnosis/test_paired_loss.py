from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity

from .runs import STEPS, log, losses, only, said, verdicts

BASE = log(losses())


def test_a_run_compared_with_itself_has_no_finding():
    assert said(BASE, BASE) == {}
    assert verdicts(BASE, BASE)["train/loss"] == "same"


def test_rounding_noise_is_no_finding():
    noise = 1e-4 * np.random.default_rng(5).standard_normal(STEPS)
    assert said(log(losses() + noise), BASE) == {}


def test_a_loss_that_ends_higher_on_the_same_batches_is_an_error():
    one = only(log(losses() + np.linspace(0.0, 0.06, STEPS)), BASE, by="paired_loss")
    assert one.severity is Severity.ERROR
    assert one.evidence["difference"] == pytest.approx(0.05, abs=0.002)


def test_a_difference_that_seeds_would_hide_is_seen_on_the_same_batches():
    """0.03 nat is half the noise of a step and twice the margin."""
    shifted = losses() + 0.03
    assert "paired_loss" in said(log(shifted), BASE)
    assert "paired_loss" not in said(log(losses(seed=9) + 0.03), BASE)


def test_a_loss_within_the_margin_is_no_finding():
    assert said(log(losses() + 0.005), BASE) == {}


def test_a_better_loss_beyond_the_margin_is_a_warning():
    one = only(log(losses() - np.linspace(0.0, 0.3, STEPS)), BASE, by="paired_loss")
    assert (one.severity, one.title) == (Severity.WARNING, "Loss too good")


def test_a_blow_up_that_comes_back_is_found_though_its_mean_proves_nothing():
    values = losses()
    values[80:86] += 40.0
    one = only(log(values), BASE, by="paired_loss")
    assert one.title == "Loss leaves the baseline's range"
    assert 80 <= one.peak_step <= 85


def test_a_spike_of_one_batch_is_left_to_the_detector_of_spikes():
    values = losses()
    values[80] += 3.0
    assert said(log(values), BASE) == {}


def test_a_mean_that_one_batch_moved_beyond_the_margin_is_not_said_to_be_within_it():
    values = losses()
    values[STEPS - 10] += 3.0
    assert 3.0 / (STEPS / 3) > 0.01, "of the mean, and more than the margin"
    assert verdicts(log(values), BASE)["train/loss"] == "beyond the margin, within its own error"
    assert "paired_loss" not in said(log(values), BASE)


def test_a_loss_that_is_not_finite_where_the_baseline_is_is_an_error():
    values = losses()
    values[60:] = np.nan
    assert only(log(values), BASE, by="paired_loss").start_step == 60


def test_other_batches_fall_back_to_the_band_and_say_so():
    other = log(losses(seed=4))
    assert said(other, BASE) == {}
    assert verdicts(other, BASE)["pairing"].startswith("seed band")


def test_a_large_change_is_found_through_the_band_too():
    assert "paired_loss" in said(log(losses(seed=4, level=2.4)), BASE)


def test_several_baselines_give_the_band_their_own_width():
    tight = [log(losses(seed=s)) for s in range(1, 7)]
    wide = [log(losses(seed=s, level=2.0 + 0.04 * (-1) ** s)) for s in range(1, 7)]
    changed = log(losses(seed=50, level=2.12))
    assert "paired_loss" in said(changed, *tight)
    assert "paired_loss" not in said(changed, *wide)


def test_a_baseline_that_hardly_learned_is_said_to_have_little_power():
    flat = log(2.0 + 0.01 * np.random.default_rng(0).standard_normal(STEPS))
    assert "hardly fell" in verdicts(flat, flat)["power"]
    assert "power" not in verdicts(BASE, BASE)


def test_too_few_common_steps_are_not_judged():
    short = log(losses(n=8))
    assert "train/loss" not in verdicts(short, BASE)


def test_a_hundred_pairs_of_healthy_runs_raise_no_alarm():
    """Noise of one stream, and what a change of kernels adds to it."""
    for seed in range(100):
        rng = np.random.default_rng([seed, 1])
        drift = 1e-3 * rng.standard_normal(STEPS).cumsum() / np.sqrt(STEPS)
        assert said(log(losses(seed) + drift), log(losses(seed))) == {}, seed


@pytest.mark.parametrize("scale", [1.0, 0.1, 0.01])
def test_the_margin_follows_a_loss_of_another_unit(scale):
    """A squared error that ends at 0.02 and is a quarter higher is worse, however small the numbers are."""
    base = scale * (0.02 + 0.5 * np.exp(-np.arange(STEPS) / 20.0))
    assert "paired_loss" in said(log(base + scale * 0.005), log(base))
    assert "paired_loss" not in said(log(base + scale * 0.001), log(base))
