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


def sized(training: int | None, held_out: int | None = 64, **facts: object):
    """A run whose samplers have these lengths."""
    lengths = ((training, True), (held_out, False))
    return smoke_run(loaders=[{"samples": n, "training": is_training} for n, is_training in lengths], **facts)


@pytest.mark.parametrize(
    ("now", "title"),
    [
        ((80, 64), "Training data of another size"),
        ((1600, 64), "Training data of another size"),
        ((800, 800), "Evaluation data of another size"),
    ],
)
def test_a_data_set_of_another_size_is_found(now, title):
    assert only(sized(*now), sized(800), by="data_change").title == title


@pytest.mark.parametrize("now", [(800, 64), (804, 64), (None, 64), (800, None)])
def test_a_sample_more_or_less_and_an_unknown_size_are_no_finding(now):
    assert said(sized(*now), sized(800)) == {}


def test_another_number_of_loaders_says_nothing_of_their_size():
    assert said(smoke_run(loaders=[{"samples": 80, "training": True}] * 2), sized(800)) == {}


def varied(*rows: tuple[int, int], **facts: object):
    return smoke_run(rows=[list(one) for one in rows], **facts)


def test_training_on_a_part_of_the_data_is_found_without_a_loader():
    one = only(varied((25600, 300)), varied((25600, 2400)), by="data_change")
    assert one.title == "Training on fewer different samples"
    assert "saw 300 different samples among 25600, in the baseline 2400" in one.message


def test_a_second_forward_of_the_same_samples_is_no_finding():
    assert said(varied((51200, 2400)), varied((25600, 2400))) == {}


def test_few_samples_other_models_and_other_lengths_say_nothing_of_variety():
    assert said(varied((100, 10)), varied((100, 90))) == {}
    assert said(varied((25600, 300), (9, 9)), varied((25600, 2400))) == {}
    assert "data_change" not in said(varied((2560, 240), steps=15), varied((25600, 2400), steps=150))


def judged_on(samples: int, trained: int):
    return smoke_run(rows_evaluated=[samples, trained])


def test_evaluation_on_the_training_data_is_found():
    one = only(judged_on(2400, 2400), judged_on(600, 0), by="data_change")
    assert one.title == "Evaluation on training samples"
    assert "2400 of 2400 different samples that were evaluated" in one.message


@pytest.mark.parametrize(
    ("now", "before"),
    [
        ((600, 0), (600, 0)),
        ((3000, 2400), (600, 0)),
        ((600, 600), (600, 590)),
        ((600, 200), (600, 0)),
        ((9, 9), (600, 0)),
    ],
)
def test_training_data_evaluated_beside_the_others_or_as_before_are_no_finding(now, before):
    assert said(judged_on(*now), judged_on(*before)) == {}
