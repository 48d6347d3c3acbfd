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
