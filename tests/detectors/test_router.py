from __future__ import annotations

import numpy as np

from .smoke_runs import STEPS, found, ones, single, smoke_run

ID = "router"


def test_a_router_without_a_gradient_is_found():
    assert single(ID, smoke_run({"smoke/router_gradient": np.zeros(STEPS)})).title == "Router without gradient"


def test_a_load_that_stays_concentrated_is_found():
    run = smoke_run({"smoke/router_load_entropy": np.full(STEPS, 0.3)})
    assert single(ID, run).title == "Experts unevenly used"


def test_concentration_in_the_beginning_is_normal():
    assert found(ID, smoke_run({"smoke/router_load_entropy": 0.95 - ones(0, 60, 0.6)})) == []
