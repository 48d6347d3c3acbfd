"""What a comparison shows of a fault belongs to the story of that fault, and is no other one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trainscope.core.finding import Finding, Severity
from trainscope.diagnosis.signs import Cause, Story
from trainscope.diagnosis.story import tell

from .story_runs import AT, NAMES, STEPS, found_in, healthy, layers, run_of


def finding(detector: str, start: int | None = None, message: str = "Something is wrong.", **more: object) -> Finding:
    last = None if start is None else STEPS - 1
    return Finding(detector, Severity.WARNING, "A title", message, start_step=start, end_step=last, **more)


def told(*findings: Finding) -> tuple[Story, ...]:
    return tell(run_of(healthy(), layers()), findings)


def detectors(story: Story) -> set[str | None]:
    return {sign.detector for sign in story.signs}


@pytest.mark.parametrize(
    ("fault", "shown", "cause"),
    [
        ("parameters_not_training", "parameter_change", Cause.STRUCTURE),
        ("stale_gradients", "first_step", Cause.STRUCTURE),
        ("scheduler_pace", "learning_rate_change", Cause.SCHEDULE),
        ("eval_mode", "setting_change", Cause.STRUCTURE),
        ("repeated_batches", "data_change", Cause.STRUCTURE),
    ],
)
def test_a_fault_and_what_the_baseline_shows_of_it_are_one_story_of_the_fault(fault, shown, cause):
    (story,) = told(finding(shown, 0), finding(fault, 0, "The fault itself."), finding("paired_loss", 200))
    assert detectors(story) == {fault, shown, "paired_loss"}
    assert story.cause is cause
    assert len(story.explanations) == 1
    (alone,) = told(finding(fault, 0, "The fault itself."))
    assert story.explanations[0].title == alone.explanations[0].title


def test_faults_that_a_comparison_alone_shows_stay_stories_of_their_own():
    first, second = told(finding("parameter_change"), finding("learning_rate_change", 40))
    assert (detectors(first), detectors(second)) == ({"parameter_change"}, {"learning_rate_change"})


def test_what_the_baseline_shows_after_an_incident_belongs_to_it():
    series = healthy()
    series["train/loss"][AT:] = np.nan
    run = run_of(series, layers())
    (story,) = tell(run, [*found_in(run), finding("paired_loss", AT), finding("eval_change", AT + 50)])
    assert story.cause is Cause.NUMERICS
    assert {"paired_loss", "eval_change", "non_finite"} <= detectors(story)


def test_a_first_loss_that_is_not_finite_is_one_story():
    series = healthy()
    series["train/loss"][:] = np.nan
    run = run_of(series, layers())
    (story,) = tell(run, [*found_in(run), finding("first_step", 0, "The first loss is nan, in the baseline 4.6.")])
    assert {"first_step", "non_finite"} <= detectors(story)
    assert [e.cause for e in story.explanations] == [Cause.NUMERICS]


def test_a_symptom_goes_with_the_incident_that_it_began_with_and_not_with_a_fault_of_all_along():
    lost = finding("optimizer_state", AT, "The optimizer lost its state once.")
    standing, incident = told(
        finding("parameter_change"), replace(lost, end_step=AT), finding("paired_signals", AT + 3)
    )
    assert detectors(standing) == {"parameter_change"}
    assert {"optimizer_state", "paired_signals"} <= detectors(incident)


def rated(rate: np.ndarray) -> tuple[Story, ...]:
    run = run_of({**healthy(), "learning_rate": rate})
    return tell(run, [finding("learning_rate_change", 2, "The learning rate is 0.")])


@pytest.mark.parametrize(("factor", "every"), [(0.5, 2), (0.1, 2), (0.1, 1)])
def test_a_rate_that_decays_every_few_steps_did_not_begin_too_high(factor, every):
    (story,) = rated(0.05 * factor ** (np.arange(STEPS) // every).astype(float))
    assert [e.title for e in story.explanations] == ["the learning rate is not that of the baseline"]


@pytest.mark.parametrize("rest", [np.full(STEPS, 1e-3), 1e-3 * np.linspace(0.1, 1.0, STEPS)], ids=["flat", "warm-up"])
def test_a_rate_that_begins_high_and_falls_at_once_to_where_it_stays_did(rest):
    (story,) = rated(np.where(np.arange(STEPS) < 2, 0.05, rest))
    assert story.explanations[0].title.startswith("the run began with a learning rate of 0.05 (step 0)")


def test_a_loss_of_exactly_0_is_not_said_to_be_anything_else():
    series = healthy()
    series["train/loss"][AT:] = 0.0
    run = run_of(series, layers())
    titles = [e.title for story in tell(run, found_in(run)) for e in story.explanations]
    assert f"the loss is exactly 0 from step {AT} on, as some trainers log a NaN" in titles
    assert not any("finite" in title for title in titles)


@pytest.mark.parametrize(("broken", "place"), [(NAMES, None), (NAMES[2:3], NAMES[2])])
def test_of_layers_that_all_break_at_one_step_none_is_called_the_first(broken, place):
    series, table = healthy(), layers()
    series["train/grad_norm"][AT:] = np.nan
    series["train/loss"][AT + 1 :] = np.nan
    for name in broken:
        table[name, "grad_l2_norm"][AT:] = np.nan
        table[name, "grad_nan_inf_ratio"] = np.where(np.arange(STEPS) < AT, 0.0, 1.0)
    run = run_of(series, table)
    story = tell(run, found_in(run))[0]
    assert (story.parameter, story.onset) == (place, AT)
    ending = "" if place is None else f", first in {place}"
    assert story.explanations[0].title == f"the gradient stopped being finite at step {AT}{ending}"


def jump(rate_is_higher: bool) -> tuple[Story, ...]:
    series = healthy()
    series["train/loss"][AT : AT + 2] *= 3.0
    rate = finding(
        "learning_rate_change", 0, "The rate is not the baseline's.", evidence={"higher": int(rate_is_higher)}
    )
    run = run_of(series)
    return tell(run, [*found_in(run), rate, finding("paired_loss", AT)])


def test_a_jump_under_a_rate_above_the_baselines_belongs_to_the_rate():
    (story,) = jump(rate_is_higher=True)
    assert story.cause is Cause.SCHEDULE
    assert {"spikes", "learning_rate_change", "paired_loss"} <= detectors(story)


def test_a_jump_under_a_rate_below_the_baselines_is_a_story_of_its_own():
    rate, incident = jump(rate_is_higher=False)
    assert (rate.cause, "spikes" in detectors(rate)) == (Cause.SCHEDULE, False)
    assert incident.cause is not Cause.SCHEDULE


def test_a_jump_with_a_bad_batch_is_the_batchs_under_any_rate():
    series = healthy()
    series["train/loss"][AT : AT + 2] *= 3.0
    rate = finding("learning_rate_change", 0, evidence={"higher": 1})
    batch = Finding("bad_batch", Severity.WARNING, "A title", "Tokens are noise.", start_step=AT, end_step=AT)
    run = run_of(series)
    assert [s.cause for s in tell(run, [*found_in(run), rate, batch])] == [Cause.SCHEDULE, Cause.DATA]


@pytest.mark.parametrize("weights_are_zero", [True, False])
def test_an_update_over_weights_that_are_zero_is_no_update_that_stopped_being_finite(weights_are_zero):
    series, table = healthy(), layers()
    series["train/loss"][AT : AT + 2] *= 3.0
    table[NAMES[0], "update_ratio"][AT - 1] = np.nan
    if weights_are_zero:
        table[NAMES[0], "weight_l2_norm"][:] = 0.0
    run = run_of(series, table)
    (story,) = tell(run, found_in(run))
    assert (story.cause is Cause.NUMERICS) is not weights_are_zero
