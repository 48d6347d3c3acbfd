from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.detectors.base import Skipped

from .runs import ROWS, falling, findings, judged, only, run_of


def held_out(rise: float, n: int = 20, best: int = 10, sd: float = 0.002, seed: int = 0) -> np.ndarray:
    """Return an evaluation loss that falls to 2.2 and rises by `rise` of that from `best` on."""
    k = np.arange(n)
    x = 2.2 * (1.0 + np.exp(-k / (best / 4.0)) + rise * np.maximum(0, k - best) / (n - 1 - best))
    return np.asarray(x * (1.0 + sd * np.random.default_rng(seed).normal(size=n)))


@pytest.mark.parametrize("rise", [0.15, 0.3, 0.8])
def test_a_held_out_loss_that_turned_is_found_at_its_best(rise):
    run = run_of({"train/loss": falling(), "eval/loss": held_out(rise)})
    found = only("overfitting", run)
    assert found.severity is Severity.WARNING
    assert abs(found.start_step - run.series["eval/loss"].step[10]) <= 3 * (ROWS * 10 // 20)
    assert found.end_step == run.last_step
    assert found.evidence["rise"] == pytest.approx(rise, rel=0.35)
    assert "while train/loss does not" in found.message


@pytest.mark.parametrize("rise", [0.0, 0.005])
def test_a_rise_that_decides_nothing_is_left_out(rise):
    assert findings("overfitting", run_of({"train/loss": falling(), "eval/loss": held_out(rise)})) == []


@pytest.mark.parametrize("rise", [0.03, 0.05])
def test_a_small_and_sure_rise_says_which_checkpoint_to_take(rise):
    found = only("overfitting", run_of({"train/loss": falling(), "eval/loss": held_out(rise)}))
    assert (found.severity, found.title) == (Severity.INFO, "Best checkpoint is not the last")
    assert 0.01 <= found.evidence["rise"] < rise
    assert f"Use the checkpoint of step {found.start_step}" in found.fixes[0]
    assert "is not overfitting yet" in found.message


@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_many_noisy_evaluations_is_no_better_checkpoint(seed):
    assert findings("overfitting", run_of({"eval/loss": held_out(0.0, n=80, sd=0.02, seed=seed)})) == []


def test_how_large_a_rise_counts_is_a_parameter():
    run = run_of({"train/loss": falling(), "eval/loss": held_out(0.06)})
    assert only("overfitting", run).severity is Severity.INFO
    assert only("overfitting", run, rise=0.03).severity is Severity.WARNING
    assert findings("overfitting", run, mild=0.2) == []
    assert findings("overfitting", run, rise=0.03, sigmas=500.0) == []


@pytest.mark.parametrize("seed", range(10))
def test_noise_of_the_evaluation_is_no_turn(seed):
    """Prechelt's fixed percentages fire on every bump of it."""
    x = held_out(0.0, n=40, sd=0.08, seed=seed)
    assert findings("overfitting", run_of({"train/loss": falling(), "eval/loss": x})) == []


def test_one_bad_evaluation_at_the_end_is_no_turn():
    x = held_out(0.0)
    x[-1] *= 1.5
    assert findings("overfitting", run_of({"train/loss": falling(), "eval/loss": x})) == []


def test_where_the_training_loss_rises_too_it_is_a_divergence():
    train = falling()
    train[200:] *= np.linspace(1.0, 2.0, 200)
    run = run_of({"train/loss": train, "eval/loss": held_out(0.6)})
    assert findings("overfitting", run) == []
    assert len(findings("divergence", run)) == 1


def test_the_worst_of_several_evaluation_losses_is_reported_and_counts_the_others():
    run = run_of(
        {
            "train/loss": falling(),
            "eval/box_loss": held_out(0.2),
            "eval/cls_loss": held_out(0.7),
            "eval/dfl_loss": held_out(0.0),
        }
    )
    found = only("overfitting", run)
    assert found.metric == "eval/cls_loss"
    assert "1 more evaluation loss" in found.message


def test_the_main_evaluation_loss_speaks_for_its_parts():
    run = run_of({"train/loss": falling(), "eval/loss": held_out(0.0), "eval/cls_loss": held_out(0.7)})
    assert findings("overfitting", run) == []


def test_too_few_evaluations_are_not_judged():
    assert judged("overfitting", run_of({"train/loss": falling()})) == Skipped("needs eval/loss")
    four = run_of({"train/loss": falling(), "eval/loss": [3.0, 2.0, 2.5, 3.0]})
    assert judged("overfitting", four) == Skipped("needs 5 evaluations")


def test_five_evaluations_that_turn_clearly_are_enough():
    five = run_of({"train/loss": falling(), "eval/loss": [3.0, 2.0, 2.5, 3.0, 3.5]})
    assert only("overfitting", five).severity is Severity.WARNING


def test_known_miss_a_turn_at_the_last_evaluation():
    x = 4.0 - 0.1 * np.arange(20.0)
    x[-1] *= 1.4
    assert findings("overfitting", run_of({"train/loss": falling(), "eval/loss": x})) == []


def test_known_false_positive_a_held_out_set_of_another_domain():
    """Adapting to a new domain forgets the old one: expected, and found all the same."""
    found = only("overfitting", run_of({"train/loss": falling(), "eval/loss": held_out(0.4, best=3)}))
    assert found.severity is Severity.WARNING


def test_what_a_spike_left_behind_is_no_overfitting():
    train, held = falling(), held_out(0.0, n=40, best=10)
    train[160:] *= 1.15
    train[160:164] *= 5.0
    held[16:] *= 1.1
    run = run_of({"train/loss": train, "eval/loss": held})
    assert findings("overfitting", run) == []
    assert len(findings("unrecovered_spike", run)) == 1
