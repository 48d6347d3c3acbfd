from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from synthetic import noise

from trainscope.core.finding import Severity
from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge
from trainscope.detectors.base import Skipped

from .runs import ROWS, batches, cosine, falling, findings, in_epochs, judged, only, stairs

ID = "epoch_order"


@pytest.mark.parametrize("whole", [True, False])
def test_one_order_is_found_whatever_way_the_log_counts_epochs(whole):
    found = only(ID, in_epochs(falling() * batches(8, sd=0.06), 8.0, whole))
    assert found.severity is Severity.WARNING
    assert found.evidence["amplitude"] == pytest.approx(0.06 / np.sqrt(2.0), rel=0.3)  # bins of two batches
    assert found.evidence["period_steps"] == pytest.approx(500, rel=0.02)
    assert found.evidence["p_value"] == 0.001
    assert "batches come in the same order" in found.message


def test_a_small_pattern_is_an_information():
    found = only(ID, in_epochs(falling(sd=0.002) * batches(8, sd=0.012), 8.0))
    assert found.severity is Severity.INFO
    assert "harmless if the order is meant" in found.message


def test_from_which_size_on_it_is_a_warning_is_a_parameter():
    run = in_epochs(falling(sd=0.002) * batches(8, sd=0.012), 8.0)
    assert only(ID, run, amplitude=0.005).severity is Severity.WARNING
    assert findings(ID, run, sigmas=100.0) == []


@pytest.mark.parametrize("kind", ["gauss", "t3", "lognormal"])
@pytest.mark.parametrize("phi", [0.0, 0.6, 0.9])
def test_shuffled_batches_have_no_pattern(kind, phi):
    for seed in range(5):
        assert findings(ID, in_epochs(falling(seed=seed, sd=0.05, kind=kind, phi=phi), 9.3)) == []


def test_stairs_and_a_steady_fall_are_no_pattern():
    assert findings(ID, in_epochs(stairs(8), 8.0)) == []
    assert findings(ID, in_epochs(np.linspace(5.0, 1.0, ROWS) + 0.01 * batches(1), 8.0)) == []


def test_a_learning_rate_that_cycles_once_an_epoch_explains_it():
    wave = 1.0 + 0.1 * np.sin(2 * np.pi * 8 * np.arange(ROWS) / ROWS)
    loss = falling() * wave
    assert len(findings(ID, in_epochs(loss, 8.0))) == 1
    assert findings(ID, in_epochs(loss, 8.0, learning_rate=1e-3 * wave)) == []
    assert len(findings(ID, in_epochs(loss, 8.0, learning_rate=cosine()))) == 1


def test_the_swing_of_the_loss_is_part_of_it():
    swing = 1.0 + 0.4 * np.sin(2 * np.pi * 8 * np.arange(ROWS) / ROWS)
    run = in_epochs(2.0 * swing * (1.0 + 0.02 * noise(np.random.default_rng(1), ROWS, "gauss", 0)), 8.0)
    assert only("oscillation", run).severity is Severity.WARNING
    found = {f.detector: f for f in judge(run, configure(Settings())).findings}
    assert found[ID].severity is Severity.WARNING
    assert found["oscillation"].severity is Severity.INFO
    assert "same order in every epoch" in found["oscillation"].message


def test_a_thousand_epochs_are_thinned():
    found = only(ID, in_epochs(np.full(32_000, 2.0) * batches(1000, n=32_000), 1000.0))
    assert "in each of" in found.message


def test_what_has_no_epochs_is_not_judged():
    run = in_epochs(falling(), 8.0)
    without = replace(run, series={"train/loss": run.series["train/loss"]})
    assert judged(ID, without) == Skipped("needs epoch and train/loss")
    assert judged(ID, in_epochs(falling(), 3.0)) == Skipped("needs 4 whole epochs after the first quarter")
    assert judged(ID, in_epochs(falling(), 1.5)) == Skipped("needs 2 whole epochs")
    assert judged(ID, in_epochs(falling(), 40.0)) == Skipped("needs 16 points of train/loss an epoch")
    assert judged(ID, replace(run, x_axis="epoch")) == Skipped("needs several points of train/loss an epoch")


def test_epochs_of_uneven_length_are_not_judged():
    run = in_epochs(falling(), 8.0)
    counter = run.series["epoch"]
    uneven = np.where(counter.step < 600, 0.0, counter.value)
    run = replace(run, series={**run.series, "epoch": replace(counter, value=np.maximum.accumulate(uneven))})
    assert judged(ID, run) == Skipped("needs epochs of equal length")


def test_restarts_of_the_learning_rate_at_other_distances_explain_nothing():
    place = np.arange(ROWS) / ROWS
    restarts = 1e-3 * (0.01 + 0.495 * (1.0 + np.cos(np.pi * ((3.0 * place) % 1.0))))
    assert len(findings(ID, in_epochs(falling() * batches(8), 8.0, learning_rate=restarts))) == 1
