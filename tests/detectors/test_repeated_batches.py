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


def drawn(asked: int, different: int, training: bool = True, early: float = 1.0):
    counts = {"samples": 1000, "asked": asked, "different": different, "different_early": int(early * different)}
    return smoke_run(loaders=[{**counts, "training": training, "batches": 100}])


def test_a_loader_that_asks_for_few_of_its_samples_is_found():
    one = single(ID, drawn(1500, 40))
    assert one.severity is Severity.WARNING
    assert "1000 samples asked 1500 times for only 40 different ones; 777 or more" in one.message


def test_a_sampler_that_repeats_each_sample_on_purpose_goes_on_to_new_ones():
    # Eight answers to each prompt, as in group-relative policy optimisation.
    assert found(ID, drawn(1600, 200, early=0.5)) == []
    assert found(ID, drawn(1600, 40, early=0.95)) != []


@pytest.mark.parametrize("run", [drawn(1500, 777), drawn(1500, 400), drawn(150, 20), drawn(1500, 40, training=False)])
def test_replacement_balanced_classes_a_short_look_and_evaluation_are_no_finding(run):
    assert found(ID, run) == []
