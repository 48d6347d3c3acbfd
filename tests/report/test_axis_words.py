"""Sentences name places in the run by what its axis counts."""

from __future__ import annotations

import pytest

from trainscope.report.axis_words import in_words


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "loss jumped to 4 at step 40, and was back by step 42",
            "loss jumped to 4 at epoch 40, and was back by epoch 42",
        ),
        ("Steps 3 and 4 are out of order", "Epochs 3 and 4 are out of order"),
        ("batch of step 5", "batches of epoch 5"),
        ("Look at the batches of steps 5 to 7.", "Look at the batches of epochs 5 to 7."),
        (
            "Look at the batch of step 40; rewind at least 100 steps and skip what is bad.",
            "Look at the batches of epoch 40; rewind to a checkpoint from before it and skip what is bad.",
        ),
        (
            "Go back at least 100 steps before step 180 and leave these batches out on replay.",
            "Go back to a checkpoint from well before epoch 180 and leave these batches out on replay.",
        ),
        ("went on for 12 steps", "went on for 12 epochs"),
        ("the step before, and trainscope_steps 4x", "the step before, and trainscope_steps 4x"),
    ],
)
def test_a_log_of_epochs_is_told_in_epochs(said, told):
    assert in_words(said, "epoch") == told
    assert in_words(said, "step") == said


def test_a_log_without_steps_is_told_in_rows():
    assert in_words("from step 3 on", "row") == "from row 3 on"
