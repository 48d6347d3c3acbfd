"""Which column a value of a text log belongs to: training and evaluation use the same words."""

from __future__ import annotations

import math

import pytest

from .logs import kinds, points, run_of_text
from .printed import loss_at


def test_lines_of_evaluation_that_use_the_same_words_are_told_apart() -> None:
    text = ""
    for epoch in range(1, 5):
        for i in range(10, 110, 10):
            text += f"2020-01-01 10:00:00,123 - INFO - [Epoch {epoch} Batch {i}/100] loss={1 / epoch:.4f}, lr=0.001\n"
        text += "2020-01-01 10:00:01,123 - INFO - Now evaluating on dev with [gpu(0), gpu(1)].\n"
        text += "".join(
            f"2020-01-01 10:00:02,123 - INFO - [Batch {i}/30] loss={epoch + i / 100:.4f}\n" for i in (10, 20, 30)
        )
    run = run_of_text(text)
    assert points(run, "eval/loss") == [(100, 1.3), (200, 2.3), (300, 3.3), (400, 4.3)]
    assert set(run.series["train/loss"].value.tolist()) == {1.0, 0.5, 0.3333, 0.25}
    assert "evaluation_lines" in kinds(run)


def test_a_name_of_a_metric_with_escapes_reaches_no_terminal() -> None:
    run = run_of_text(
        "".join(
            f"step {i} \x1b[31mloss\x1b[0m: {loss_at(i)} evil\x1b]0;a title\x07 metric that is long: 1.{i}\n"
            for i in range(40)
        )
    )
    assert all(name.isprintable() for name in run.series)


def test_a_perplexity_alone_makes_a_loss() -> None:
    text = "".join(f"iteration {i} | valid ppl: {math.exp(5 - i / 10):.6f}\n" for i in range(20))
    run = run_of_text(text)
    assert run.series["eval/loss"].value == pytest.approx([5 - i / 10 for i in range(20)], abs=1e-6)
    assert "derived_loss" in kinds(run)
