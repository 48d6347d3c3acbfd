"""Which batches a plan names: the positions that a log holds, counts of them, and numbers that are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trainscope.core.run import Run, Series
from trainscope.diagnosis.signs import Cause
from trainscope.replay.plan import Places, plan
from trainscope.replay.positions import why_unplanned
from trainscope.replay.text import lines

from .planned import PLACES, SOURCE, a_run, a_story, bad, planned


def test_with_several_batches_a_step_the_whole_step_is_skipped():
    found = planned(a_story(Cause.DATA), [bad(250)], a_run(per_step=4))
    assert found.skip_batches == [1000, 1001, 1002, 1003]
    assert any("a step has 4 batches" in note for note in found.notes)


def test_a_run_without_positions_counts_them_and_says_so():
    run = Run("log", "log.csv", "csv", {"train/loss": Series("train/loss", np.arange(600), np.ones(600))})
    found = planned(a_story(None), run=run)
    assert found.skip_batches[:2] == [150, 151]
    assert any("did not record its batches" in note for note in found.notes)
    assert "were not recorded" in found.reason


def handed_over(index: np.ndarray, per_step: int = 1) -> Run:
    """A run of the Python recorder: it knows what the script gave it, and how many micro-batches a step had."""
    run = a_run(per_step, batch_index=index)
    return replace(run, series={k: s for k, s in run.series.items() if k not in ("batch/count", "smoke/batch_hash")})


@pytest.mark.parametrize(("name", "first"), [("log.csv", 1), ("trainer_state.json", 10)])
def test_a_log_that_counts_the_steps_that_are_done_is_one_ahead_of_the_positions(name, first):
    kind = "csv" if first == 1 else "hf_trainer"
    steps = np.arange(first, 601)
    run = Run("log", name, kind, {"train/loss": Series("train/loss", steps, np.ones(len(steps)))})
    found = planned(a_story(None), run=run)
    assert (found.steps[0], found.skip_batches[0]) == (150, 149)
    assert any("counted from step 1" in note for note in found.notes)


def test_a_batch_index_that_counts_steps_is_turned_into_positions():
    found = planned(a_story(Cause.DATA), [bad(250)], handed_over(np.arange(600), per_step=4))
    assert found.skip_batches == [1000, 1001, 1002, 1003]
    assert any("it counts steps, each of 4 batches" in note for note in found.notes)
    by_position = planned(a_story(Cause.DATA), [bad(250)], handed_over(4 * np.arange(600), per_step=4))
    assert by_position.skip_batches == [1000, 1001, 1002, 1003]
    assert not any("it counts steps" in note for note in by_position.notes)


def test_a_batch_index_within_the_epoch_is_added_up_over_the_epochs():
    found = planned(a_story(Cause.DATA), [bad(250)], handed_over(np.arange(600) % 100))
    assert found.skip_batches == [250]
    assert any("begins again at step 100" in note for note in found.notes)


def test_numbers_of_another_kind_are_no_positions():
    ids = np.random.default_rng(0).permutation(600)
    found = planned(a_story(Cause.DATA), [bad(250)], handed_over(ids))
    assert found.skip_batches == [250]
    assert any(f"batch_index falls from {ids[0]} to {ids[1]} at step 1" in note for note in found.notes)


NAMES_NO_BATCH = {
    "negative": -1.0 - np.arange(600),
    "nan": np.full(600, np.nan),
    "infinite": np.full(600, np.inf),
    "huge": np.full(600, 1e300),
    "beyond JSON": 2.0**60 + 1e6 * np.arange(600),
    "broken": np.arange(600) + 0.5,
}


@pytest.mark.parametrize("index", NAMES_NO_BATCH.values(), ids=NAMES_NO_BATCH)
def test_numbers_that_are_no_positions_are_not_taken_for_some(index):
    found = planned(a_story(None), run=a_run(batch_index=index))
    assert found.skip_batches == list(range(150, 450))
    assert any("no batch_index is a position: taken is 1 a step, counted from step 0" in note for note in found.notes)


def test_a_lone_hole_in_the_positions_is_bridged():
    index = np.arange(600.0)
    index[::7] = np.nan
    assert planned(a_story(Cause.DATA), [bad(252)], a_run(batch_index=index)).skip_batches == [252]


@pytest.mark.parametrize("count", [np.nan, np.inf, -3.0, 0.0, 1e9, 2.5])
def test_counts_that_are_none_are_not_taken_for_some(count):
    odd = np.full(600, count)
    found = planned(a_story(Cause.DATA), [bad(250)], a_run(**{"batch/count": odd, "micro_batches": odd}))
    assert found.skip_batches == [250]


@pytest.mark.parametrize("hashed", [np.nan, np.inf, -1.0, 1e30])
def test_a_hash_that_is_none_is_not_named(hashed):
    found = planned(a_story(Cause.DATA), [bad(250)], a_run(**{"smoke/batch_hash": np.full(600, hashed)}))
    assert [batch.hash for batch in found.batches] == [None]


@pytest.mark.parametrize("first", [-300, 2**53, 2**62])
def test_steps_that_count_no_updates_name_no_batch(first):
    series = {"train/loss": Series("train/loss", first + np.arange(600), np.ones(600))}
    run = Run("log", "log.csv", "csv", series)
    assert plan(run, [], (a_story(None, first + 250, first + 256),), PLACES, source=SOURCE) is None
    assert "so that no batch can be named" in (why_unplanned(run) or "")


def test_facts_that_are_no_counts_are_left_out():
    odd = replace(a_run(), config={"smoke.training_loader": -3.0})
    assert planned(a_story(None), run=odd).loader == 0


@pytest.mark.parametrize(("per_step", "start"), [(1, 100), (4, 400)])
def test_the_line_of_code_winds_the_loader_forward_to_the_checkpoint(per_step, start):
    found = planned(a_story(Cause.DATA), [bad(250)], a_run(per_step))
    assert (found.rewind_to_step, found.rewind_to_batch) == (100, start)
    assert any(line.endswith(f'["skip_batches"], start={start})') for line in lines(found, "replay_config.json"))
    anew = planned(a_story(Cause.DATA), [bad(250)], a_run(per_step), Places())
    assert anew.rewind_to_batch == 0
    assert any(line.endswith('["skip_batches"])') for line in lines(anew, "replay_config.json"))


def test_after_a_checkpoint_of_a_log_that_counts_from_one_comes_the_batch_of_its_number():
    steps = np.arange(1, 601)
    run = Run("log", "log.csv", "csv", {"train/loss": Series("train/loss", steps, np.ones(600))})
    assert planned(a_story(None), run=run).rewind_to_batch == 100
