"""A story of a run with a fault: its order, its dates, its places; and no story of health."""

from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run, Series
from trainscope.diagnosis.signs import Cause, Stage
from trainscope.diagnosis.story import tell

from .faulty_runs import SEEDS, bad_batch, one_gradient, overflow, rate_leap, written_weights
from .story_runs import (
    AT,
    STEPS,
    found_in,
    healthy,
    hurt,
    layers,
    only,
    run_of,
    stories,
)


def test_a_loss_that_creeps_up_began_where_it_turned():
    series = healthy(0)
    series["train/loss"][AT:] *= 1.0 + 0.02 * np.arange(STEPS - AT)
    run = run_of(series)
    turned = Finding(
        "divergence", Severity.ERROR, "Loss diverges", "train/loss rises.", "train/loss", start_step=AT,
        end_step=STEPS - 1, evidence={"score": 20.0},
    )  # fmt: skip
    (story,) = tell(run, [turned])
    assert story.onset <= AT + 3


@SEEDS
def test_a_healthy_run_has_no_story(seed):
    assert stories(run_of(healthy(seed), layers(seed))) == ()


@SEEDS
def test_even_findings_that_are_no_warning_make_no_story(seed):
    run = run_of(healthy(seed), layers(seed))
    note = Finding(
        "grad_norm", Severity.INFO, "Peak", "It rose.", "train/grad_norm", start_step=AT, evidence={"ratio": 6.0}
    )
    assert tell(run, [note]) == ()


@SEEDS
def test_speed_and_logs_are_no_part_of_why_training_broke(seed):
    run = run_of(healthy(seed), layers(seed))
    slow = Finding("throughput", Severity.WARNING, "Slow", "It is slow.", "train/step_time", start_step=AT)
    assert tell(run, [slow]) == ()


def test_the_signs_stand_in_causal_order_and_the_lead_is_that_over_the_loss():
    story = only(rate_leap(0))
    assert [s.stage for s in story.signs if s.step == AT][:2] == [Stage.SCHEDULE, Stage.UPDATE]
    assert [s.step for s in story.signs] == sorted(s.step for s in story.signs)
    assert (story.loss_step, story.lead) == (AT + 2, 2)


def test_the_layer_and_the_parameter_that_were_hurt_are_named():
    for made, layer in ((written_weights, "b.fc"), (one_gradient, "a.out"), (overflow, "b.proj")):
        story = only(made(0))
        assert (story.layer, story.parameter) == (layer, f"{layer}.weight")
        assert story.explanations[0].parameter == f"{layer}.weight"


def test_a_plain_log_tells_less_and_says_what_is_missing():
    rich, poor = only(bad_batch(0)), only(bad_batch(0, recorded=False))
    assert poor.cause is Cause.DATA
    assert poor.explanations[0].weight < rich.explanations[0].weight
    assert poor.suspects == ()
    assert any("batch statistics" in text for text in poor.missing)
    assert any("batch statistics" in text for text in poor.explanations[0].missing)
    assert poor.layer is None


def test_findings_of_one_incident_are_one_story_and_stay_findings():
    run = rate_leap(0)
    findings = found_in(run)
    assert len([f for f in findings if f.severity >= Severity.WARNING]) >= 2
    told = {s.detector for s in only(run).signs}
    assert {f.detector for f in findings if f.severity >= Severity.WARNING} <= told


def test_two_incidents_far_apart_are_two_stories():
    series = healthy(0)
    hurt(series, 120)
    hurt(series, 250)
    assert [s.onset for s in stories(run_of(series))] == [120, 250]


def test_what_the_run_is_called_and_how_findings_are_ordered_changes_nothing():
    run = bad_batch(3)
    findings = found_in(run)
    assert tell(run, findings) == tell(run, findings[::-1])


def test_layers_with_hostile_names_and_broken_values_break_nothing():
    series, table = healthy(0), layers(0, names=("a\x1b[31m.weight", "", ".weight", "nan"))
    table["nan", "grad_l2_norm"][:] = np.nan
    table["", "grad_l2_norm"] = np.zeros(0)
    hurt(series)
    for story in stories(run_of(series, table)):
        assert story.signs


def test_a_run_that_is_too_short_to_have_a_history_is_told_by_its_findings_alone():
    loss = Series("train/loss", np.arange(12), np.linspace(3.0, 2.0, 12))
    run = Run("short", "short", "csv", {"train/loss": loss})
    spike = Finding(
        "spikes", Severity.WARNING, "Loss spike", "train/loss jumped to 9 at step 8.", "train/loss", start_step=8
    )
    story = tell(run, [spike])[0]
    assert [s.detector for s in story.signs] == ["spikes"]
    assert story.signs[0].event == "jumped to 9 at step 8"


def test_a_layer_that_moves_only_after_the_loss_is_not_named_as_the_first():
    def placed(late: int) -> str | None:
        series, table = healthy(), layers()
        series["train/loss"][AT] *= 2.0
        table["b.fc.weight", "grad_l2_norm"][AT + late : AT + late + 3] *= 20.0
        return only(run_of(series, table)).parameter

    assert placed(0) == "b.fc.weight"
    assert placed(5) is None


def lasting(detector: str, end: int = STEPS - 1) -> Finding:
    return Finding(detector, Severity.ERROR, "A fault", "A fault of all along.", start_step=1, end_step=end)


def blown_up() -> Run:
    """Return a run whose loss turns and rises for good, with a gradient that grows from then on."""
    series, after = healthy(), np.clip(np.arange(STEPS) - AT, 0, None)
    series["train/loss"] = series["train/loss"] * np.exp(after / 40.0)
    series["train/grad_norm"] = series["train/grad_norm"] * np.exp(np.minimum(after / 10.0, 3.0))
    return run_of(series)


@pytest.mark.parametrize("fault", ["stale_gradients", "clipping"])
def test_a_fault_that_lets_every_update_grow_explains_what_blows_up_while_it_holds(fault):
    run = blown_up()
    story, *others = tell(run, [*found_in(run), lasting(fault), lasting("plateau")])
    assert others == []
    assert {fault, "divergence", "plateau"} <= {sign.detector for sign in story.signs}
    assert story.cause is Cause.STRUCTURE
    assert (story.onset, story.loss_step is not None) == (1, True)


@pytest.mark.parametrize("fault", ["eval_mode", "repeated_batches", "parameters_not_training"])
def test_a_fault_that_lets_nothing_grow_stays_a_story_of_its_own(fault):
    run = blown_up()
    first, second = tell(run, [*found_in(run), lasting(fault)])
    assert [fault in {sign.detector for sign in story.signs} for story in (first, second)] == [True, False]
    assert "divergence" in {sign.detector for sign in second.signs}


def test_a_fault_that_was_over_before_an_incident_is_not_its_cause():
    run = blown_up()
    assert len(tell(run, [*found_in(run), lasting("stale_gradients", AT // 2)])) == 2


@pytest.mark.parametrize("made", [rate_leap, bad_batch, written_weights])
def test_an_incident_with_a_cause_of_its_own_keeps_it_beside_such_a_fault(made):
    run = made(0)
    alone = tell(run, found_in(run))
    beside = tell(run, [*found_in(run), lasting("stale_gradients")])
    assert len(beside) == len(alone) + 1
    assert [s.cause for s in beside[1:]] == [s.cause for s in alone]
