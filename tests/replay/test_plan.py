"""The cause decides: bad batches are skipped, a spike without a cause skips a range, all else is fixed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trainscope.core.finding import Finding, Severity
from trainscope.core.positions import ranges
from trainscope.core.run import Run, Series
from trainscope.diagnosis.signs import Cause, Explanation, Sign, Stage, Story
from trainscope.replay.checkpoints import Checkpoint
from trainscope.replay.config import Source
from trainscope.replay.plan import Places, plan
from trainscope.replay.positions import why_unplanned
from trainscope.replay.text import lines

SOURCE = Source(id="0" * 12, name="smoke", path="smoke")
PLACES = Places([Checkpoint(100 * k, f"ckpt/step_{100 * k}.pt") for k in range(1, 10)])


def a_run(per_step: int = 1, steps: int = 600, **extra: np.ndarray) -> Run:
    step = np.arange(steps)
    values = {
        "train/loss": np.ones(steps),
        "batch_index": per_step * step,
        "batch/count": np.full(steps, per_step),
        "batch/token_entropy": np.ones(steps),
        "smoke/batch_hash": step + 16,
        "micro_batches": np.full(steps, per_step),
        **extra,
    }
    series = {name: Series(name, step, np.asarray(value, dtype=float)) for name, value in values.items()}
    return Run("smoke", "out/smoke", "recorded", series, {"smoke.training_loader": 0})


def a_story(cause: Cause | None, onset: int = 250, end: int = 256, detector: str = "spikes", **fields) -> Story:
    explanations = () if cause is None else (Explanation(cause, f"the {cause} broke it", 1.0, fixes=("Lower it.",)),)
    sign = Sign(onset, Stage.LOSS, "train/loss", "rose", detector=detector, end_step=end)
    return Story((sign,), onset, end, onset, explanations=explanations, **fields)


def bad(*steps: int) -> Finding:
    return Finding(
        "bad_batch", Severity.WARNING, "Bad batch", "bad", start_step=steps[0], end_step=steps[-1],
        evidence={"steps": ranges(steps)},
    )  # fmt: skip


def planned(story, findings=(), run=None, places=PLACES):
    stories = story if isinstance(story, tuple) else (story,)
    found = plan(run if run is not None else a_run(), findings, stories, places, source=SOURCE)
    assert found is not None
    return found


def test_bad_batches_are_skipped_and_nothing_else():
    found = planned(a_story(Cause.DATA, suspects=(249, 250, 251, 252)), [bad(250, 251)])
    assert (found.action, found.skip_batches, found.steps, found.cause) == ("skip", [250, 251], [250, 251], "data")
    assert [(b.index, b.step, b.hash, b.is_bad) for b in found.batches] == [
        (250, 250, "0000010a", True),
        (251, 251, "0000010b", True),
    ]
    assert any("palliative" in note for note in found.notes)


def test_without_a_detector_the_suspects_of_the_story_are_skipped():
    assert planned(a_story(Cause.DATA, suspects=(250, 253))).skip_batches == [250, 253]


def test_bad_batches_of_several_incidents_are_skipped_together():
    stories = (a_story(Cause.DATA, suspects=(250,)), a_story(Cause.DATA, 400, 402, suspects=(400, 401)))
    assert planned(stories, [bad(250), bad(400, 401)]).skip_batches == [250, 400, 401]


def test_what_is_said_of_batches_is_what_is_known_of_them():
    bare = Run("log", "log.jsonl", "jsonl", {"train/loss": a_run().series["train/loss"]}, {})
    assert planned(a_story(None)).reason.startswith("its batches look like the others and nothing else explains it")
    assert planned(a_story(None), run=bare).reason.startswith("its batches were not recorded and nothing else")
    guess = planned(a_story(Cause.DATA), run=bare).reason
    assert guess.startswith("its batches were not recorded and which of them is at fault is a guess: skip the batches")
    died = planned(a_story(Cause.NUMERICS, detector="non_finite"), run=bare).reason
    assert died.startswith("the run is not finite from step 250 on and its batches were not recorded: run the same")


def test_one_batch_is_spoken_of_as_one():
    found = planned(a_story(Cause.DATA), [bad(250)])
    assert found.reason == "the batch of step 250 is bad by itself: skip it and nothing else"
    assert "  skip     1 batch: 250" in list(lines(found, "replay_config.json"))


def test_with_several_batches_a_step_the_whole_step_is_skipped():
    found = planned(a_story(Cause.DATA), [bad(250)], a_run(per_step=4))
    assert found.skip_batches == [1000, 1001, 1002, 1003]
    assert any("a step has 4 batches" in note for note in found.notes)


def test_the_checkpoint_is_at_least_a_hundred_steps_older_than_the_first_sign():
    assert planned(a_story(Cause.DATA), [bad(250)]).checkpoint == "ckpt/step_100.pt"
    assert planned(a_story(Cause.DATA, 300, 302), [bad(300)]).rewind_to_step == 200
    found = planned(a_story(Cause.DATA), [bad(250)], places=Places([Checkpoint(240, "late.pt")]))
    assert (found.checkpoint, found.rewind_to_step, found.resume) == (None, 0, False)
    assert any("only 10 steps before" in n or "10 steps before it" in n for n in found.notes)
    nothing = planned(a_story(Cause.DATA), [bad(250)], places=Places())
    assert any("no checkpoint in the run's folder" in note for note in nothing.notes)


def test_the_generator_state_of_the_checkpoint_is_named_where_it_was_recorded():
    states = [Checkpoint(100, "rng_states/step_100.pkl"), Checkpoint(250, "rng_states/step_250.pkl")]
    assert (
        planned(a_story(Cause.DATA), [bad(250)], places=Places(PLACES.checkpoints, states)).rng_state == states[0].path
    )
    assert planned(a_story(Cause.DATA), [bad(250)], places=Places(PLACES.checkpoints, states[1:])).rng_state is None


@pytest.mark.parametrize("cause", [Cause.OPTIMIZER, None])
def test_a_spike_that_no_batch_explains_skips_the_range_around_it(cause):
    found = planned(a_story(cause))
    assert found.action == "skip"
    assert found.skip_batches == list(range(150, 450))
    assert "PaLM" in found.reason
    assert "look like the others" in found.reason
    assert not any(batch.is_bad for batch in found.batches)


def test_a_plan_that_guesses_at_the_batch_does_not_advise_against_itself():
    found = planned(a_story(Cause.DATA))
    assert "look at the batch of step 250 first: if it is bad, leave out that one and nothing else" in found.notes
    assert not any("rather than skipping" in note for note in found.notes)
    assert "rather than skipping: lower it" in planned(a_story(Cause.OPTIMIZER)).notes


def test_no_batch_behind_the_end_of_the_run_is_skipped():
    found = planned(a_story(None, 298, 302), run=a_run(steps=400))
    assert (found.steps[-1], found.skip_batches) == (399, list(range(198, 400)))
    assert "the run ends at step 399: what comes behind it is not skipped" in found.notes
    assert not any("the run ends" in note for note in planned(a_story(None, 200), run=a_run(steps=400)).notes)


def test_a_long_incident_skips_five_hundred_batches_at_most():
    assert planned(a_story(None, 150, 590)).skip_batches == list(range(50, 550))


@pytest.mark.parametrize(
    "cause", [Cause.SCHEDULE, Cause.STRUCTURE, Cause.ROUTING, Cause.GENERALIZATION, Cause.NUMERICS]
)
def test_what_is_not_in_the_data_is_fixed_and_no_batch_is_skipped(cause):
    found = planned(a_story(cause))
    assert (found.action, found.skip_batches, found.batches) == ("fix", [], [])
    assert found.reason.startswith("do not skip data: the cause is ")
    assert not any("--replay" in command for command in found.commands)


def test_an_optimizer_that_is_used_wrongly_is_fixed():
    assert planned(a_story(Cause.OPTIMIZER, detector="optimizer_state")).action == "fix"


def test_weights_that_decay_away_are_a_setting_and_no_batch_is_skipped():
    found = planned(a_story(Cause.OPTIMIZER, 40, 590, "weight_norm"))
    assert (found.action, found.skip_batches) == ("fix", [])
    assert found.reason.startswith("do not skip data: the cause is how the optimizer is used or set: the optimizer")


def test_a_range_that_would_be_the_whole_run_is_not_skipped():
    found = planned(a_story(None, 80), run=a_run(steps=250))
    assert (found.action, found.skip_batches) == ("fix", [])
    assert found.reason.startswith("do not skip data: its batches look like the others, nothing says which")
    assert planned(a_story(None, 101), run=a_run(steps=250)).skip_batches == list(range(1, 250))
    assert planned(a_story(None, 0, 3), run=a_run(steps=200)).action == "fix"


def test_nan_from_clean_data_runs_again_first():
    found = planned(a_story(Cause.NUMERICS, detector="non_finite"))
    assert (found.action, found.skip_batches) == ("rerun", [])
    assert "hardware" in found.reason
    assert planned(a_story(Cause.SCHEDULE, detector="non_finite")).action == "fix"


def test_what_a_run_has_from_the_start_does_not_hide_an_incident():
    stories = (a_story(Cause.GENERALIZATION, 0, 500), a_story(Cause.DATA, suspects=(250,)))
    assert planned(stories, [bad(250)]).skip_batches == [250]


def test_of_several_incidents_the_one_of_the_worst_finding_decides():
    wiggle = Finding("grad_norm", Severity.WARNING, "Gradient", "rose", start_step=56, end_step=70)
    broken = Finding("divergence", Severity.ERROR, "Loss", "rose", start_step=250, end_step=500)
    stories = (a_story(Cause.NUMERICS, 56, 70, "grad_norm"), a_story(Cause.SCHEDULE, 250, 500, "divergence"))
    found = planned(stories, [wiggle, broken])
    assert (found.action, found.cause, found.onset) == ("fix", "schedule", 250)


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


def test_without_a_story_there_is_nothing_to_plan():
    assert plan(a_run(), [], (), PLACES, source=SOURCE) is None
    by_epoch = Run("log", "log.csv", "csv", {}, x_axis="epoch")
    assert plan(by_epoch, [], (a_story(Cause.DATA),), PLACES, source=SOURCE) is None


def test_the_words_say_what_the_plan_says():
    said = "\n".join(lines(planned(a_story(Cause.DATA), [bad(250, 251)]), "replay_config.json"))
    for part in ("plan: skip batches", "cause: data", "ckpt/step_100.pt, step 100, resumed", "2 batches: 250-251",
                 "hash 0000010a", "palliative", "trainscope smoke --replay replay_config.json -- COMMAND",
                 "SkippingDataLoader"):  # fmt: skip
        assert part in said
    said = "\n".join(lines(planned(a_story(Cause.SCHEDULE)), "replay_config.json"))
    assert "plan: do not skip data" in said
    assert "SkippingDataLoader" not in said


def test_no_command_of_a_plan_writes_over_it():
    """A plan that is named by hand knows no run, so that nothing could be proven by it."""
    assert planned(a_story(None)).commands == ["trainscope smoke --replay replay_config.json -- COMMAND"]
    assert planned(a_story(Cause.SCHEDULE)).commands == []


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
