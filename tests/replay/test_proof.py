"""A replay is held against its original: gone, still there, moved, or nothing proven."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from trainscope.core.run import Run, Series
from trainscope.core.settings import Settings
from trainscope.detectors import configure
from trainscope.replay.alignment import align
from trainscope.replay.config import Batch, ReplayConfig
from trainscope.replay.proof import Verdict, prove

N, AT = 300, 180
SKIP = [180, 181, 182]
CONFIG = ReplayConfig(skip_batches=SKIP, steps=SKIP, onset=AT)
CHOSEN = configure(Settings())


def clean(n: int = N + 10) -> np.ndarray:
    rng = np.random.default_rng(0)
    return 2.5 + 2 * np.exp(-np.arange(n) / 30) + 0.05 * rng.standard_normal(n)


def a_run(loss: np.ndarray, positions: np.ndarray, dropped: list[int] | None = None, loader: bool = True) -> Run:
    step = np.arange(len(loss))
    values = {"train/loss": loss, "batch_index": positions, "train/grad_norm": 1 + 0 * loss}
    config = {"smoke.data_loader": loader}
    if dropped is not None:
        config["smoke.dropped_batches"] = json.dumps(dropped)
    return Run("smoke", "s", "recorded", {k: Series(k, step, np.asarray(v, float)) for k, v in values.items()}, config)


def original() -> Run:
    loss = clean()[:N].copy()
    loss[AT : AT + 3] = 6.0
    return a_run(loss, np.arange(N))


def replayed(change=lambda loss: None, dropped=SKIP, **options) -> Run:
    kept = np.array([p for p in range(N + 3) if p not in dropped])[:N]
    loss = clean()[kept]
    change(loss)
    return a_run(loss, kept, dropped, **options)


def rises(at: int, high: float = 6.0):
    def change(loss):
        loss[at : at + 3] = high

    return change


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


def test_runs_that_differ_before_anything_was_left_out_are_called_inexact():
    def noise(loss):
        loss += 1e-6

    proof = prove(original(), replayed(noise), CONFIG, CHOSEN)
    assert proof.verdict is Verdict.VERIFIED
    assert "differ from step 0 on" in proof.notes[0]


def test_a_rerun_that_is_finite_suspects_the_hardware():
    broken = a_run(np.where(np.arange(N) >= AT, np.nan, clean()[:N]), np.arange(N))
    config = ReplayConfig(skip_batches=[], onset=AT, action="rerun")
    proof = prove(broken, replayed(dropped=[]), config, CHOSEN)
    assert proof.verdict is Verdict.VERIFIED
    assert "suspect the hardware" in proof.reason
    assert prove(broken, broken, config, CHOSEN).verdict is Verdict.STILL_THERE


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


def a_log(first: int = 1) -> Run:
    """The original as a plain log: no batches, and steps that count from one."""
    loss = original().series["train/loss"]
    return Run("log", "log.csv", "csv", {"train/loss": Series("train/loss", loss.step + first, loss.value)})


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
