from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.detectors.base import Skipped

from .runs import ROWS, at, falling, findings, game, judged, only, run_of


def test_a_discriminator_that_has_won_is_one_warning_from_there_to_the_end():
    found = only("gan_imbalance", run_of(game(won=200)))
    assert found.severity is Severity.WARNING
    assert (found.metric, found.end_step) == ("D_A", at(ROWS - 1))
    assert abs(found.start_step - at(200)) <= at(20)
    assert found.evidence["opponent"] == pytest.approx(0.7, abs=0.05)


@pytest.mark.parametrize("names", [("d_loss", "g_loss"), ("errD", "errG"), ("Loss/D/loss", "Loss/G/loss")])
def test_players_are_told_by_their_names(names):
    d, g = game(won=200).values()
    assert only("gan_imbalance", run_of(dict(zip(names, (d, g), strict=True)))).metric == names[0]


def test_the_two_halves_of_a_discriminator_are_judged_together():
    d, g = game(won=200).values()
    found = only("gan_imbalance", run_of({"D_real": d / 2, "D_fake": d / 2, "G_GAN": g}))
    assert found.metric == "D_real + D_fake"
    assert findings("gan_imbalance", run_of({"D_real": d / 2, "D_fake": d / 2 + 0.2, "G_GAN": g})) == []


def test_a_generator_can_win_too():
    d, g = game(won=200).values()
    assert only("gan_imbalance", run_of({"D_A": g, "G_A": d})).metric == "G_A"


@pytest.mark.parametrize("seed", range(20))
def test_a_game_in_balance_is_silent(seed):
    assert findings("gan_imbalance", run_of(game(seed=seed))) == []


def test_a_strong_discriminator_that_is_caught_up_with_is_silent():
    losses = game(won=150)
    losses["D_A"][330:] = 0.2
    losses["G_A"][330:] = 0.4
    assert findings("gan_imbalance", run_of(losses)) == []


def test_both_losses_at_0_are_no_victory():
    losses = game(won=200)
    losses["G_A"][200:] = 0.0
    assert findings("gan_imbalance", run_of(losses)) == []


def test_a_wasserstein_loss_has_no_floor():
    losses = game(won=200)
    losses["D_A"] -= 0.01
    assert findings("gan_imbalance", run_of(losses)) == []


def test_the_level_and_the_share_are_parameters():
    run = run_of(game(won=200))
    assert findings("gan_imbalance", run, pinned=1e-6) == []
    assert findings("gan_imbalance", run, share=0.6) == []


def test_a_run_without_two_players_is_not_judged():
    assert isinstance(judged("gan_imbalance", run_of({"train/loss": falling()})), Skipped)
    assert isinstance(judged("gan_imbalance", run_of({"D_A": np.ones(ROWS)})), Skipped)
