from __future__ import annotations

import numpy as np

from .smoke_runs import STEPS, found, single, skipped, smoke_run

ID = "unigram_floor"


def test_a_loss_at_the_entropy_of_the_labels_is_found():
    assert single(ID, smoke_run({"smoke/cross_entropy": np.full(STEPS, 3.18)})).evidence["label_entropy"] == 3.2


def test_a_model_that_learned_a_little_more_is_right():
    assert found(ID, smoke_run({"smoke/cross_entropy": np.full(STEPS, 3.0)})) == []


def test_labels_that_are_all_alike_have_no_floor():
    level = np.full(STEPS, 0.02)
    assert found(ID, smoke_run({"smoke/cross_entropy": level, "smoke/label_entropy": level})) == []


def test_label_smoothing_lifts_the_floor_and_is_not_judged():
    assert found(ID, smoke_run({"smoke/cross_entropy": np.full(STEPS, 3.3)}, label_smoothing=0.1)) == []


def test_a_short_run_is_skipped():
    assert "120 steps" in skipped(ID, smoke_run({"smoke/cross_entropy": np.full(50, 3.2)}))
