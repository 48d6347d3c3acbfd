"""The cause decides: bad batches are skipped, a spike without a cause skips a range, all else is fixed."""

from __future__ import annotations

import pytest

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.diagnosis.signs import Cause
from trainscope.replay.checkpoints import Checkpoint
from trainscope.replay.plan import Places, plan
from trainscope.replay.text import lines

from .planned import PLACES, SOURCE, a_run, a_story, bad, planned


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
