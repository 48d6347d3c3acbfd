from __future__ import annotations

import pytest
from smoke_runs import smoke_run

from .runs import only, said


def loaded(*, training: bool | None, held_out: bool | None = True, **facts: object):
    """A run whose training loader asks in this order, beside one for evaluation."""
    return smoke_run(
        loaders=[
            {"batches": 40, "training": True, "sequential": training},
            {"batches": 4, "training": False, "sequential": held_out},
        ],
        **facts,
    )


def test_a_training_loader_that_no_longer_shuffles_is_found():
    one = only(loaded(training=True), loaded(training=False), by="data_change")
    assert one.title == "Training data no longer shuffled"


@pytest.mark.parametrize(("now", "before"), [(True, True), (False, False), (False, True), (None, False), (True, None)])
def test_the_same_order_a_better_one_and_an_unknown_one_are_no_finding(now, before):
    assert said(loaded(training=now), loaded(training=before)) == {}


def test_the_order_of_an_evaluation_makes_no_difference():
    assert said(loaded(training=False, held_out=False), loaded(training=False)) == {}


def seen(again: int, changed: int):
    return smoke_run(samples_again=again, samples_changed=changed)


def test_samples_that_no_longer_change_have_lost_their_augmentation():
    one = only(seen(90, 0), seen(90, 88), by="data_change")
    assert one.title == "Augmentation lost"
    assert "Of 90 samples that came again 0 had changed; in the baseline 88 of 90" in one.message


def test_samples_that_change_now_are_augmented():
    assert only(seen(90, 88), seen(90, 0), by="data_change").title == "Samples are augmented"


def test_a_few_samples_seen_again_say_nothing():
    assert said(seen(5, 0), seen(90, 88)) == {}
    assert said(seen(90, 70), seen(90, 88)) == {}
