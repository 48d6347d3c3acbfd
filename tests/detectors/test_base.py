from __future__ import annotations

import pytest

from trainscope.core.metrics import Kind
from trainscope.detectors.base import Skipped, by_kind, number, training_losses

from .runs import falling, run_of


def names(found: object) -> list[str]:
    assert not isinstance(found, Skipped)
    return [s.name for s in found]


def test_the_whole_loss_speaks_for_its_parts():
    run = run_of({"train/box_loss": falling(), "train/loss": falling(), "eval/loss": falling()})
    assert names(training_losses(run)) == ["train/loss"]


def test_where_there_is_no_whole_each_part_is_judged_and_adversaries_on_request():
    run = run_of({"train/box_loss": falling(), "loss_G": falling(), "eval/loss": falling(), "other": falling()})
    assert names(training_losses(run)) == ["train/box_loss", "loss_G"]
    assert names(training_losses(run, adversarial=False)) == ["train/box_loss"]


def test_reinforcement_learning_and_a_run_without_a_loss_are_skipped_with_the_reason():
    assert training_losses(run_of({"eval/loss": falling()})) == Skipped("needs train/loss")
    skipped = training_losses(run_of({"train/loss": falling(), "train/reward": falling()}))
    assert isinstance(skipped, Skipped)
    assert "reinforcement-learning" in skipped.reason


def test_series_are_chosen_by_kind_in_the_order_of_the_run():
    run = run_of({"val_acc": falling(), "b/grad_norm": falling(), "a/grad_norm": falling(), "c/grad_norm": []})
    assert [s.name for s in by_kind(run, Kind.GRAD_NORM)] == ["b/grad_norm", "a/grad_norm"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.0, "2"), (0.123456, "0.1235"), (1e-9, "1e-09"), (123456.0, "1.235e+05"), (float("inf"), "inf")],
)
def test_a_number_in_a_sentence_has_four_digits(value, text):
    assert number(value) == text
