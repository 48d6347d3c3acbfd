from __future__ import annotations

import numpy as np

from .smoke_runs import STEPS, found, ones, single, skipped, smoke_run

ID = "rank_divergence"


def test_gradients_that_differ_between_ranks_are_found_with_their_size():
    one = single(ID, smoke_run({"smoke/rank_gradient_spread": ones(10, value=0.038)}))
    assert "3.8 %" in one.message
    assert one.start_step == 10


def test_rounding_is_no_finding():
    assert found(ID, smoke_run({"smoke/rank_gradient_spread": np.full(STEPS, 1e-6)})) == []


def test_a_single_rank_is_skipped():
    run = smoke_run({"smoke/rank_gradient_spread": None, "smoke/rank_weight_spread": None})
    assert "several ranks" in skipped(ID, run)


def test_ranks_that_all_train_on_the_same_batches_are_found():
    assert single(ID, smoke_run({"smoke/rank_same_batch": ones(0)})).title == "Ranks train on the same batches"


def test_ranks_with_weights_of_their_own_may_share_batches():
    tensor_parallel = {"smoke/rank_same_batch": ones(0), "smoke/rank_weight_spread": ones(0, value=1e-5)}
    assert found(ID, smoke_run(tensor_parallel)) == []
    assert found(ID, smoke_run({"smoke/rank_same_batch": ones(0, 149)})) == []
