from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np
import pytest

from trainscope.core.run import Run, Series
from trainscope.detectors.base import Lack, Skipped

from .runs import falling, findings, judged, only, run_of
from .smoke_runs import found, single, skipped, smoke_run

ID = "initial_loss"


def test_a_first_loss_far_above_chance_is_found():
    one = single(ID, smoke_run(initial_cross_entropy=16.0))
    assert one.evidence["chance"] == log(30)


def test_a_first_loss_near_chance_is_right():
    assert found(ID, smoke_run(initial_cross_entropy=log(30) + 0.5)) == []


def test_a_pretrained_model_may_start_low():
    assert found(ID, smoke_run(initial_cross_entropy=0.4)) == []


def test_other_objectives_are_skipped():
    assert "cross entropy" in skipped(ID, smoke_run(vocabulary=None))


def of_log(first: float, every: int = 10, **config: object) -> Run:
    run = run_of({"train/loss": falling() * first / 5.0})
    loss = run.series["train/loss"]
    series = {"train/loss": Series(loss.name, every * np.arange(1, len(loss) + 1), loss.value)}
    return replace(run, series=series, config={"vocab_size": 50_257} | config)


def test_a_log_beside_its_vocabulary_is_judged_by_its_first_losses():
    one = only(ID, of_log(22.0))
    assert one.metric == "train/loss"
    assert one.evidence["chance"] == log(50_257)
    assert "divided once by the number of micro-batches" in one.fixes[0]
    assert "a model that knows nothing of 5.026e+04 classes has 10.82" in one.message


def test_a_log_that_starts_near_chance_or_below_is_right():
    assert findings(ID, of_log(11.2)) == []
    assert findings(ID, of_log(2.0)) == []


def test_a_first_loss_that_is_little_too_high_is_a_bad_initialisation():
    one = only(ID, of_log(13.5))
    assert len(one.fixes) == 1
    assert "initialisation" in one.fixes[0]


@pytest.mark.parametrize("config", [{"vocab_size": None}, {"model.vocab_size": 32_000}, {"vocab_size": 1.5}])
def test_a_log_without_one_vocabulary_needs_a_smoke_run(config):
    reason = "needs a run recorded with trainscope smoke or trainscope ci"
    assert judged(ID, of_log(22.0, **config)) == Skipped(reason, kind=Lack.RECORDING)


def test_a_log_that_begins_late_is_not_judged():
    run = of_log(22.0, every=500)
    loss = run.series["train/loss"]
    short = {"train/loss": Series(loss.name, loss.step[:60], loss.value[:60])}
    assert isinstance(judged(ID, replace(run, series=short)), Skipped)
    assert isinstance(judged(ID, replace(of_log(22.0), x_axis="epoch")), Skipped)
