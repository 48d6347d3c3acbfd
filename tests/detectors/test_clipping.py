from __future__ import annotations

import numpy as np

from .smoke_runs import STEPS, found, single, skipped, smoke_run

ID = "clipping"


def test_clipping_above_the_backward_is_found():
    assert single(ID, smoke_run({"smoke/clip_backward_calls": np.zeros(STEPS)})).title == "Clipped too early"


def test_clipping_between_two_micro_batches_is_found():
    run = smoke_run({"smoke/backward_calls": np.full(STEPS, 2.0)})
    assert single(ID, run).title == "Clipped too early"


def test_clipping_scaled_gradients_is_found():
    assert single(ID, smoke_run({"smoke/clip_scaled": np.ones(STEPS)})).title == "Clipped before unscaling"


def test_a_gradient_above_max_norm_after_clipping_is_found():
    norm = np.full(STEPS, 4.0)
    run = smoke_run({"train/grad_norm": norm, "smoke/clip_norm_before": norm, "train/grad_norm_after_clip": norm})
    assert single(ID, run).title == "Clipping without effect"


def test_clipping_what_has_no_gradient_is_found():
    run = smoke_run({"smoke/clip_norm_before": np.zeros(STEPS), "train/grad_norm_after_clip": np.full(STEPS, 1.05)})
    assert single(ID, run).title == "Clipping of nothing"


def test_clipping_nothing_where_the_step_has_no_gradient_either_is_no_fault():
    nothing = np.zeros(STEPS)
    names = ("smoke/clip_norm_before", "train/grad_norm", "train/grad_norm_after_clip")
    assert found(ID, smoke_run(dict.fromkeys(names, nothing))) == []


def test_one_of_several_calls_that_clips_nothing_is_no_fault():
    run = smoke_run({"smoke/clip_norm_before": np.zeros(STEPS), "smoke/clip_calls": np.full(STEPS, 2.0)})
    assert found(ID, run) == []


def test_clipping_only_some_parameters_may_leave_a_larger_whole():
    norm = np.full(STEPS, 4.0)
    run = smoke_run({"train/grad_norm": norm, "smoke/clip_norm_before": norm / 2, "train/grad_norm_after_clip": norm})
    assert found(ID, run) == []


def test_several_optimizers_are_not_judged():
    run = smoke_run({"smoke/optimizer_steps": np.full(STEPS, 2.0), "smoke/clip_backward_calls": np.zeros(STEPS)})
    assert "several optimizers" in skipped(ID, run)


def test_a_run_without_clipping_is_skipped():
    assert "does not clip" in skipped(ID, smoke_run({"smoke/clip_calls": np.zeros(STEPS)}))
