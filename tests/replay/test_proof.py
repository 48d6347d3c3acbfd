"""A replay is held against its original: gone, still there, moved, or nothing proven."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trainscope.replay.config import Batch, ReplayConfig
from trainscope.replay.proof import Verdict, prove

from .proven import AT, CHOSEN, CONFIG, SKIP, N, a_run, clean, original, replayed, rises


def test_a_spike_that_is_gone_is_verified_with_the_numbers_of_both_runs():
    proof = prove(original(), replayed(), CONFIG, CHOSEN)
    assert proof.verdict is Verdict.VERIFIED
    assert "3 batches left out: the incident of step 180 is gone" in proof.reason
    rows = {(row.metric, row.what): row for row in proof.rows}
    highest = rows["train/loss", "highest in steps 180-182"]
    assert highest.original == 6.0
    assert highest.replay < 3.0
    assert rows["train/loss", "usual before step 180"].original == rows["train/loss", "usual before step 180"].replay
    difference = next(row for row in proof.rows if row.what.startswith("difference"))
    assert difference.replay == 0.0, "the same batches, batch by batch, with the loss they had"
    assert proof.notes == ("the loss is the same, bit by bit, for the 180 steps before step 180",)


def test_a_spike_that_comes_again_is_still_there():
    assert prove(original(), replayed(rises(AT)), CONFIG, CHOSEN).verdict is Verdict.STILL_THERE


def test_a_rise_that_no_detector_reports_is_still_there():
    proof = prove(original(), replayed(rises(AT, 4.4)), CONFIG, ())
    assert proof.verdict is Verdict.NOT_PROVEN
    low = [c for c in CHOSEN if c.detector.id == "spikes"]
    quiet = [replace(c, params=replace(c.params, min_rise=1.0)) for c in low]
    proof = prove(original(), replayed(rises(AT, 4.4)), CONFIG, tuple(quiet))
    assert proof.verdict is Verdict.STILL_THERE
    assert "still rises" in proof.reason


def test_a_spike_elsewhere_has_moved():
    proof = prove(original(), replayed(rises(240)), CONFIG, CHOSEN)
    assert proof.verdict is Verdict.MOVED
    assert "at step 240" in proof.reason


def test_another_spike_that_the_original_had_too_has_not_moved():
    both = original()
    loss = both.series["train/loss"].value.copy()
    loss[100] = 6.0
    both = a_run(loss, np.arange(N))
    assert prove(both, replayed(rises(100)), CONFIG, CHOSEN).verdict is Verdict.VERIFIED


def test_a_script_without_a_loader_proves_nothing():
    proof = prove(original(), replayed(dropped=[], loader=False), CONFIG, CHOSEN)
    assert (proof.verdict, "no DataLoader" in proof.reason) == (Verdict.NOT_PROVEN, True)


def test_batches_that_were_not_reached_prove_nothing():
    assert "181-182 were not reached" in prove(original(), replayed(dropped=[180]), CONFIG, CHOSEN).reason
    assert "none of the batches" in prove(original(), replayed(dropped=[]), CONFIG, CHOSEN).reason


def test_a_run_without_an_incident_proves_nothing():
    healthy = a_run(clean()[:N], np.arange(N))
    assert prove(healthy, replayed(), CONFIG, CHOSEN).verdict is Verdict.NOT_PROVEN


def test_a_replay_that_ends_before_the_incident_proves_nothing():
    short = a_run(clean()[:100], np.arange(100), SKIP)
    assert "before the incident" in prove(original(), short, CONFIG, CHOSEN).reason


def test_the_replay_of_another_rank_proves_nothing():
    of_rank = replace(original(), source="out/smoke_rank1")
    proof = prove(of_rank, replayed(), CONFIG, CHOSEN)
    assert (proof.verdict, proof.reason) == (
        Verdict.NOT_PROVEN,
        "the original run is of rank 1 and the replay of one process: start as many processes as then",
    )


def test_a_rerun_that_is_finite_suspects_the_hardware():
    broken = a_run(np.where(np.arange(N) >= AT, np.nan, clean()[:N]), np.arange(N))
    config = ReplayConfig(skip_batches=[], onset=AT, action="rerun")
    proof = prove(broken, replayed(dropped=[]), config, CHOSEN)
    assert proof.verdict is Verdict.VERIFIED
    assert "suspect the hardware" in proof.reason
    assert prove(broken, broken, config, CHOSEN).verdict is Verdict.STILL_THERE


def test_a_range_that_reaches_the_end_of_the_run_is_judged_by_the_batches_behind_it():
    """No batch after the incident is in both runs then."""
    skip = list(range(AT - 20, N))
    config = ReplayConfig(skip_batches=skip, steps=skip, onset=AT)
    kept = np.array([*range(AT - 20), *range(N, 2 * N)])[:N]
    assert prove(original(), a_run(clean(2 * N)[kept], kept, skip), config, CHOSEN).verdict is Verdict.VERIFIED
    loss = clean(2 * N)[kept]
    loss[AT - 20 : AT - 17] = 6.0
    assert prove(original(), a_run(loss, kept, skip), config, CHOSEN).verdict is Verdict.STILL_THERE


@pytest.mark.parametrize(("ended", "way_out"), [("steps", "more --steps"), ("script", "let it train longer")])
def test_a_replay_that_ends_before_the_incident_says_how_to_get_there(ended, way_out):
    skip = list(range(AT - 20, N))
    config = ReplayConfig(skip_batches=skip, steps=skip, onset=AT)
    short = a_run(clean()[: AT - 20], np.arange(AT - 20), skip)
    ending = replace(short, config={**short.config, "smoke.ended": ended})
    proof = prove(original(), ending, config, CHOSEN)
    assert proof.verdict is Verdict.NOT_PROVEN
    assert proof.reason.startswith(f"the replay ends at step {AT - 21}, before the incident: ")
    assert way_out in proof.reason


def test_every_bad_batch_of_a_plan_must_be_gone_and_not_only_the_first():
    later = 250
    loss = clean()[:N].copy()
    loss[AT : AT + 3] = loss[later : later + 3] = 6.0
    whole = a_run(loss, np.arange(N))
    batches = [Batch(index=p, step=p, is_bad=True) for p in (*SKIP, later)]
    config = ReplayConfig(skip_batches=[*SKIP, later], steps=[*SKIP, later], onset=AT, batches=batches)
    dropped = [*SKIP, later]
    assert prove(whole, replayed(dropped=dropped), config, CHOSEN).verdict is Verdict.VERIFIED
    proof = prove(whole, replayed(rises(later - 3), dropped=dropped), config, CHOSEN)
    assert proof.verdict is Verdict.STILL_THERE
    assert "step 247" in proof.reason


@pytest.mark.parametrize("onset", [0, 10**6, 2**53 - 1])
def test_an_onset_at_which_the_original_shows_nothing_proves_nothing(onset):
    proof = prove(original(), replayed(), CONFIG.model_copy(update={"onset": onset}), CHOSEN)
    assert proof.verdict is Verdict.NOT_PROVEN
    assert proof.reason == f"the original run shows no incident at step {onset} that could be gone"
