from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity

from .smoke_runs import STEPS, found, single, smoke_run

ID = "repeated_batches"


def looped(period: int) -> np.ndarray:
    return 100.0 + np.arange(STEPS) % period


def test_the_same_batch_at_every_step_is_an_error():
    one = single(ID, smoke_run({"smoke/batch_hash": np.full(STEPS, 5.0)}))
    assert (one.severity, one.evidence["period"]) == (Severity.ERROR, 1)


@pytest.mark.parametrize("period", [2, 8])
def test_a_short_loop_is_an_error(period):
    one = single(ID, smoke_run({"smoke/batch_hash": looped(period)}))
    assert (one.severity, one.evidence["period"]) == (Severity.ERROR, period)


def test_epochs_in_the_same_order_are_an_information():
    run = smoke_run({"smoke/batch_hash": looped(22)}, loaders=[{"batches": 22}])
    assert single(ID, run).severity is Severity.INFO


def test_batches_that_come_again_inside_an_epoch_are_an_error():
    run = smoke_run({"smoke/batch_hash": looped(22)}, loaders=[{"batches": 100}])
    assert single(ID, run).severity is Severity.ERROR


def test_accumulation_shortens_an_epoch_in_steps():
    run = smoke_run({"smoke/batch_hash": looped(22), "micro_batches": np.full(STEPS, 4.0)}, loaders=[{"batches": 88}])
    assert single(ID, run).severity is Severity.INFO


def test_a_batch_that_recurs_by_chance_is_no_period():
    values = np.arange(float(STEPS))
    values[[40, 90]] = values[0]
    assert found(ID, smoke_run({"smoke/batch_hash": values})) == []
