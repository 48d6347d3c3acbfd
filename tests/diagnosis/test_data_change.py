from __future__ import annotations

import numpy as np
import pytest
from smoke_runs import STEPS, smoke_run

from trainscope.core.facts import BATCH
from trainscope.core.finding import Severity
from trainscope.core.settings import Settings
from trainscope.diagnosis.compare import compare_runs

from .runs import only, said

FLAT = np.ones(STEPS)


def titles(run, base) -> list[str]:
    """Return what is said of the data."""
    return [f.title for f in said(run, base).get("data_change", [])]


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


def other_batches() -> dict[str, object]:
    """Series of a run that trained on none of the baseline's batches."""
    return {name: smoke_run().series[name].value + 1e6 for name in BATCH if name in smoke_run().series}


def sized(training: int | None, held_out: int | None = 64, *, same: bool = False, **facts: object):
    """A run whose samplers draw from so many samples."""
    lengths = ((training, True), (held_out, False))
    loaders = [{"samples": n, "training": is_training} for n, is_training in lengths]
    return smoke_run({} if same else other_batches(), loaders=loaders, **facts)


@pytest.mark.parametrize("now", [80, 1600])
def test_a_training_set_of_another_size_is_found(now):
    assert titles(sized(now), sized(800, same=True)) == ["Training data of another size"]


def test_a_data_set_that_calls_itself_longer_and_gives_the_same_batches_is_no_finding():
    assert titles(sized(1600, same=True), sized(800, same=True)) == []


def test_an_evaluation_of_a_part_of_the_samples_is_an_information():
    (one,) = [
        f
        for f in compare_runs(sized(800, 32, same=True), [sized(800, same=True)], Settings()).findings
        if f.detector == "data_change"
    ]
    assert (one.title, one.severity) == ("Evaluation data of another size", Severity.INFO)


@pytest.mark.parametrize("now", [(800, 64), (804, 64), (None, 64), (800, None)])
def test_a_sample_more_or_less_and_an_unknown_size_are_no_finding(now):
    assert titles(sized(*now), sized(800, same=True)) == []


def test_another_number_of_loaders_says_nothing_of_their_size():
    two = smoke_run(other_batches(), loaders=[{"samples": 80, "training": True}] * 2)
    assert titles(two, sized(800, same=True)) == []


def varied(*rows: tuple[int, int], same: bool = False, **facts: object):
    return smoke_run({} if same else other_batches(), rows=[list(one) for one in rows], **facts)


def test_training_on_a_part_of_the_data_is_found_without_a_loader():
    (one,) = said(varied((25600, 300)), varied((25600, 2400), same=True))["data_change"]
    assert one.title == "Training on fewer different samples"
    assert "saw 300 different samples among 25600, in the baseline 2400" in one.message


def test_a_second_forward_of_the_same_samples_and_packed_samples_are_no_finding():
    assert titles(varied((51200, 2400)), varied((25600, 2400), same=True)) == []
    assert titles(varied((200, 200)), varied((25600, 2400), same=True)) == []


def test_which_model_comes_first_makes_no_difference():
    assert titles(varied((6400, 6400), (12800, 900)), varied((12800, 900), (6400, 6400), same=True)) == []
    assert titles(varied((6400, 64), (12800, 900)), varied((12800, 900), (6400, 6400), same=True)) != []


def test_few_samples_other_models_and_other_lengths_say_nothing_of_variety():
    assert titles(varied((100, 10)), varied((100, 90), same=True)) == []
    assert titles(varied((25600, 300), (9, 9)), varied((25600, 2400), same=True)) == []
    assert titles(varied((2560, 240), steps=15), varied((25600, 2400), steps=150, same=True)) == []


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


def split(shared: float | None):
    return smoke_run(ranks_shared=shared)


def test_ranks_that_no_longer_split_the_samples_are_found():
    (one,) = said(split(0.48), split(0.0))["data_change"]
    assert one.title == "Ranks share samples"
    assert "48 % of the samples" in one.message


@pytest.mark.parametrize(("now", "before"), [(0.005, 0.0), (0.48, 0.5), (None, 0.0), (0.48, None), (0.0, 0.48)])
def test_padding_ranks_that_always_drew_for_themselves_and_one_rank_are_no_finding(now, before):
    assert titles(split(now), split(before)) == []


def test_a_loader_that_lost_its_shuffling_is_found():
    run = smoke_run({"smoke/batch_hash": np.arange(STEPS) % 22}, loaders=[{"batches": 22}])
    assert "data_change" in said(run, smoke_run())


def test_inputs_of_another_spread_are_found_and_rounding_is_not():
    def made(mean: float, std: float):
        return smoke_run({"smoke/eval_input_mean": mean * FLAT, "smoke/eval_input_std": std * FLAT})

    assert only(made(0.3, 0.4), made(0.0, 1.0), by="data_change").title == "Evaluation sees other inputs"
    assert said(made(1e-6, 1.0), made(0.0, 1.0)) == {}


@pytest.mark.parametrize("of", ["", "eval_"])
def test_a_mask_that_is_handed_over_beside_the_inputs_is_no_other_data(of):
    def made(mean: float, numbers: float):
        series = {"input_mean": mean, "input_std": 1.0, "inputs": numbers}
        return smoke_run({f"smoke/{of}{name}": value * FLAT for name, value in series.items()})

    assert said(made(0.5, 1280), made(0.0, 640)) == {}
    assert "data_change" in said(made(0.5, 660), made(0.0, 640))
