"""The cause that was put in is named, at its step and place, and no other is blamed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.diagnosis.signs import Cause
from trainscope.diagnosis.story import tell

from .faulty_runs import SEEDS, bad_batch, lost_state, one_gradient, overflow, rate_leap, written_weights
from .story_runs import (
    AT,
    NAMES,
    STEPS,
    bad_batch_in_mixed_precision,
    found_in,
    healthy,
    hurt,
    layers,
    only,
    run_of,
    stories,
)


@SEEDS
@pytest.mark.parametrize(
    ("made", "cause"),
    [
        (bad_batch, Cause.DATA),
        (rate_leap, Cause.SCHEDULE),
        (written_weights, Cause.NUMERICS),
        (one_gradient, Cause.NUMERICS),
        (overflow, Cause.NUMERICS),
        (lost_state, Cause.OPTIMIZER),
    ],
)
def test_the_cause_that_was_put_in_is_named_first_at_its_step(made, cause, seed):
    story = only(made(seed))
    assert story.cause is cause
    assert story.onset == AT
    assert story.explanations[0].weight > 0.5
    assert story.explanations[0].fixes


@SEEDS
@pytest.mark.parametrize("early", range(4))
def test_weights_that_were_written_explain_a_loss_that_never_comes_back(seed, early):
    """A divergence is dated by the turn of a fitted curve, some points before the loss leaps."""
    series, table = healthy(seed), layers(seed)
    table["b.fc.weight", "weight_l2_norm"][AT:] = 30.0
    series["train/loss"][AT:] *= 1.9
    series["train/grad_norm"][AT : AT + 8] *= 8.0
    run = run_of(series, table)
    turned = Finding(
        "divergence", Severity.ERROR, "Loss diverges", "train/loss rises.", "train/loss", start_step=AT - early,
        end_step=STEPS - 1, evidence={"score": 20.0},
    )  # fmt: skip
    (story,) = tell(run, [turned])
    assert (story.cause, story.onset, story.loss_step) == (Cause.NUMERICS, AT, AT)
    assert story.parameter == "b.fc.weight"


@pytest.mark.parametrize("where", ["b.fc", None])
def test_what_watched_the_forward_says_where_a_nan_was_born(where):
    """All gradients are not finite at that step, and the first of them by name is none of it."""
    series, table = healthy(0), layers(0)
    for name in NAMES:
        table[name, "grad_l2_norm"][AT:] = np.nan
    series["train/loss"][AT:] = np.nan
    series["train/grad_norm"][AT:] = np.nan
    born = "in the loss itself" if where is None else f", first in GeluBackward0 at or after module {where}"
    origin = Finding(
        "non_finite_origin", Severity.ERROR, "Origin",
        f"A value stopped being finite at step {AT} {born}; it reached x.", "train/loss",
        layer=where, start_step=AT, end_step=AT,
    )  # fmt: skip
    run = run_of(series, table)
    (story,) = tell(run, [*found_in(run), origin])
    assert story.explanations[0].title == f"a value stopped being finite at step {AT} {born}"
    assert story.explanations[0].layer == where


def test_a_bad_batch_is_a_suspect_and_a_leap_of_the_rate_has_none():
    assert set(only(bad_batch(0)).suspects) == {AT, AT + 1, AT + 2}
    assert only(rate_leap(0)).suspects == ()


def test_an_overflow_of_the_loss_scale_whose_step_was_refused_is_not_blamed_for_the_batch_after_it():
    refused, taken = (only(bad_batch_in_mixed_precision(refused=refused)) for refused in (True, False))
    assert refused.explanations[0].cause is Cause.DATA
    assert not any(sign.event == "stopped being finite" for sign in refused.signs)
    assert any(sign.event == "stopped being finite" and sign.step == AT - 3 for sign in taken.signs)


def test_an_update_that_holds_what_else_wrote_to_the_weights_names_it_too():
    """The Python recorder takes the update from the weights before two steps."""
    series, table = healthy(0), layers(0)
    table["b.fc.weight", "update_l2_norm"][AT - 1] = 27.0
    table["b.fc.weight", "update_ratio"][AT - 1] = 9.0
    table["b.fc.weight", "weight_l2_norm"][AT:] = 30.0
    series["optimizer/update_norm"][AT - 1] = 27.0
    hurt(series, AT, 10)
    story = only(run_of(series, table))
    assert (story.cause, story.parameter) == (Cause.NUMERICS, "b.fc.weight")
    assert "changed by themselves" in story.explanations[0].title


def beside_a_spike(seed: int, how_odd: float, *, at: int = AT) -> Run:
    """A bad batch among small ones, whose statistics vary so much that it is no finding by itself."""
    series, table = healthy(seed), layers(seed)
    hurt(series, AT, 2)
    series["batch/token_entropy"] = 2.7 + 0.3 * np.clip(np.random.default_rng(seed).standard_normal(STEPS), -2, 2)
    series["batch/token_entropy"][at : at + 2] = 2.7 + how_odd * 0.3
    for name in NAMES:
        table[name, "grad_l2_norm"][AT : AT + 2] *= 6.0
    return run_of(series, table)


@SEEDS
def test_a_batch_that_is_odder_than_all_before_it_is_suspected_where_the_loss_spikes(seed):
    story = only(beside_a_spike(seed, 6.0))
    assert (story.cause, set(story.suspects)) == (Cause.DATA, {AT, AT + 1})
    assert story.explanations[0].weight > 0.6
    assert "is unlike those before it" in story.explanations[0].title


@SEEDS
def test_a_batch_like_others_before_it_or_at_another_step_is_not_suspected(seed):
    assert only(beside_a_spike(seed, 2.5)).suspects == ()
    assert only(beside_a_spike(seed, 6.0, at=AT + 4)).suspects == ()


def test_batches_that_look_like_all_others_are_not_blamed():
    series = healthy(0)
    hurt(series, steps=2)
    story = only(run_of(series, layers(0)))
    assert not story.explanations or story.explanations[0].weight < 0.5


def test_a_loss_that_does_not_fall_is_no_bad_batch():
    series = {"train/loss": 0.158 + 0.001 * np.random.default_rng(0).standard_normal(STEPS)}
    run = run_of(series)
    assert {f.detector for f in found_in(run)} == {"plateau"}
    assert all(e.cause is not Cause.DATA for story in stories(run) for e in story.explanations)


def test_a_point_an_epoch_names_no_batch():
    series = {"train/loss": healthy(0)["train/loss"]}
    series["train/loss"][AT : AT + 2] *= 2.0
    run = run_of(series)
    assert only(run).cause is Cause.DATA
    assert only(replace(run, x_axis="epoch")).cause is not Cause.DATA


def test_a_loss_that_rises_before_the_rate_does_is_not_the_rates_fault():
    series = healthy(0)
    hurt(series, AT - 6, 4)
    series["learning_rate"][AT:] *= 3.0
    story = stories(run_of(series, layers(0)))[0]
    blamed = {e.cause: e.weight for e in story.explanations}
    assert blamed.get(Cause.SCHEDULE, 0.0) < 0.4


@pytest.mark.parametrize(("times", "cause"), [(2.5, Cause.DATA), (1.0, None)])
def test_a_gradient_that_stands_out_a_little_with_the_loss_fits_a_bad_batch(times, cause):
    series = {name: value for name, value in healthy().items() if not name.startswith("batch/")}
    series["train/loss"][AT] *= 2.0
    series["train/grad_norm"][AT] = times * np.median(series["train/grad_norm"][AT - 25 : AT])
    story = only(run_of(series))
    assert not [sign for sign in story.signs if sign.signal == "train/grad_norm"], "too little to be a sign"
    assert story.cause is cause
