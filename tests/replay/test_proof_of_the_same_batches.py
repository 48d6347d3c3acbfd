"""A proof holds the steps of both runs against each other by their batches, and only where these are the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trainscope.core.run import Run, Series
from trainscope.replay.alignment import align
from trainscope.replay.config import ReplayConfig
from trainscope.replay.proof import Verdict, prove

from .proven import AT, CHOSEN, CONFIG, SKIP, N, a_log, original, replayed, rises


def test_runs_that_differ_before_anything_was_left_out_are_called_inexact():
    def noise(loss):
        loss += 1e-6

    proof = prove(original(), replayed(noise), CONFIG, CHOSEN)
    assert proof.verdict is Verdict.VERIFIED
    assert "differ from step 0 on" in proof.notes[0]


def test_steps_are_paired_by_their_batches_and_by_number_without_them():
    one, other = original(), replayed()
    pairs = align(one, other)
    assert pairs.at(179) == 179
    assert pairs.at(183) == 180
    assert 181 not in pairs.original
    step, mine, theirs = pairs.values(one, other, "train/loss")
    assert len(step) == N - 3
    assert mine == pytest.approx(theirs)
    bare = Run("a", "a", "csv", {"train/loss": one.series["train/loss"]})
    assert len(align(bare, bare)) == N
    assert len(align(Run("a", "a", "csv", {}), bare)) == 0


def test_a_log_that_counts_from_one_is_held_against_the_same_batches_of_a_recording():
    config = ReplayConfig(skip_batches=SKIP, steps=[s + 1 for s in SKIP], onset=AT + 1)
    proof = prove(a_log(), replayed(), config, CHOSEN)
    assert proof.verdict is Verdict.VERIFIED
    assert proof.notes == ("the loss is the same, bit by bit, for the 180 steps before step 181",)
    assert proof.rows[0].original == proof.rows[0].replay
    from_zero = prove(a_log(0), replayed(), CONFIG, CHOSEN)
    assert from_zero.notes == ("the loss is the same, bit by bit, for the 180 steps before step 180",)


def test_a_plan_of_one_batch_a_step_proves_nothing_for_a_script_that_takes_several():
    """The positions of step 180 are 360 and 361 there: what was left out are the batches of step 90."""
    config = ReplayConfig(skip_batches=SKIP, steps=[s + 1 for s in SKIP], onset=AT + 1)
    replay = replayed()
    step = replay.series["train/loss"].step
    two = {"batch/count": np.full(len(step), 2.0), "batch_index": 2.0 * step}
    replay = replace(replay, series={**replay.series, **{k: Series(k, step, v) for k, v in two.items()}})
    proof = prove(a_log(), replay, config, CHOSEN)
    assert proof.verdict is Verdict.NOT_PROVEN
    assert "takes 1 batch a step, and this script trains on 2" in proof.reason
    assert "record the training with trainscope smoke" in proof.reason


def with_hashes(run: Run, *, seed: int) -> Run:
    """Give each position of a loader of this seed a hash of its own."""
    index = run.series["batch_index"]
    hashes = np.random.default_rng(seed).integers(2**32, size=2 * N)[index.value.astype(int)]
    hashed = Series("smoke/batch_hash", index.step, hashes.astype(float))
    return replace(run, series={**run.series, "smoke/batch_hash": hashed})


def test_a_replay_on_other_batches_proves_nothing():
    """In another order the bad batch is elsewhere, and what was left out was a good one."""
    one = with_hashes(original(), seed=1)
    assert prove(one, with_hashes(replayed(), seed=1), CONFIG, CHOSEN).verdict is Verdict.VERIFIED
    proof = prove(one, with_hashes(replayed(), seed=2), CONFIG, CHOSEN)
    assert proof.verdict is Verdict.NOT_PROVEN
    assert "the batches are not those of the original run" in proof.reason
    assert "--seed" in proof.reason
    again = prove(one, with_hashes(replayed(rises(AT)), seed=2), CONFIG, CHOSEN)
    assert again.verdict is Verdict.STILL_THERE, "an incident that is there needs no batch to be the same"
