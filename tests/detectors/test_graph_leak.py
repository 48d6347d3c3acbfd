from __future__ import annotations

import numpy as np

from .smoke_runs import STEPS, found, single, smoke_run

ID = "graph_leak"


def test_graphs_that_pile_up_are_found_from_where_they_begin():
    one = single(ID, smoke_run({"memory/live_graphs": np.maximum(1.0, np.arange(STEPS) / 4.0)}))
    assert one.start_step == 13


def test_a_few_graphs_that_live_for_good_are_no_leak():
    assert found(ID, smoke_run({"memory/live_graphs": np.full(STEPS, 5.0)})) == []


def test_a_window_of_many_steps_that_does_not_grow_is_no_leak():
    assert found(ID, smoke_run({"memory/live_graphs": np.minimum(np.arange(STEPS), 32.0)})) == []
