"""Signals of two runs on the same batches: which are of another size, and from which step on."""

from __future__ import annotations

import numpy as np
import pytest
from smoke_runs import STEPS, smoke_run

from .runs import log, losses, only, said

FLAT = np.ones(STEPS)


@pytest.mark.parametrize("factor", [0.0, 0.5, 1.8, 4.0])
def test_a_gradient_norm_of_another_size_is_found(factor):
    base, run = log(losses(), train__grad_norm=FLAT), log(losses(), train__grad_norm=factor * FLAT)
    assert only(run, base, by="paired_signals").metric == "train/grad_norm"


@pytest.mark.parametrize("onset", [0, 20, 60])
def test_a_signal_is_of_another_size_from_the_step_on_at_which_it_became_so(onset):
    late = np.where(np.arange(STEPS) < onset, FLAT, 4.0 * FLAT)
    noisy = (np.arange(STEPS) - onset) % 7 == 6  # steps that are as in the baseline, now and then
    late[noisy] = FLAT[noisy]
    one = only(log(losses(), train__grad_norm=late), log(losses(), train__grad_norm=FLAT), by="paired_signals")
    assert (one.start_step, one.end_step) == (onset, STEPS - 1)
    assert one.message == (
        f"train/grad_norm is 4 times the baseline's from step {onset} on (median over the last {STEPS * 2 // 3} steps)."
    )


def test_a_signal_that_is_off_at_two_steps_in_three_is_dated_by_them():
    factor = np.where(np.arange(STEPS) % 30 < 20, 2.0, 1.0)
    one = only(log(losses(), train__grad_norm=factor), log(losses(), train__grad_norm=FLAT), by="paired_signals")
    assert one.start_step == 0


@pytest.mark.parametrize(
    ("name", "part"), [("smoke__buffer_update", "batch norms"), ("model__weight_norm", "weight decay")]
)
def test_each_signal_has_a_remedy_of_its_own(name, part):
    run, base = (log(losses(), **{name: value}) for value in (np.zeros(STEPS), FLAT))
    assert part in only(run, base, by="paired_signals").fixes[0]


def test_a_gradient_norm_of_about_the_same_size_is_no_finding():
    assert said(log(losses(), train__grad_norm=1.2 * FLAT), log(losses(), train__grad_norm=FLAT)) == {}


def test_gradient_norms_of_other_batches_get_more_room():
    base, run = log(losses(), train__grad_norm=FLAT), log(losses(seed=1), train__grad_norm=1.8 * FLAT)
    assert said(run, base) == {}


def test_a_part_of_the_loss_that_moved_on_the_same_batches_is_found():
    base, run = log(losses(), aux_loss=0.1 * FLAT), log(losses(), aux_loss=0.2 * FLAT)
    assert only(run, base, by="paired_signals").metric == "aux_loss"


def test_attention_that_falls_to_few_keys_is_found():
    one = only(
        smoke_run({"attention/entropy": 0.5 * FLAT}), smoke_run({"attention/entropy": FLAT}), by="paired_signals"
    )
    assert one.metric == "attention/entropy"


def test_what_each_optimizer_follows_is_compared_whichever_was_made_first():
    def run(*levels: float):
        noise = 0.02 * np.random.default_rng(0).standard_normal(STEPS)
        return smoke_run({f"smoke/objective_{i}": level + noise for i, level in enumerate(levels)})

    assert said(run(1.4, 0.7), run(0.7, 1.4)) == {}
    assert "paired_signals" in said(run(1.4, 0.4), run(0.7, 1.4))
    assert "paired_signals" in said(run(0.4, 1.4), run(0.7, 1.4))
