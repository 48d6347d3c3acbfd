"""Updates that leap by themselves are found; those that follow rate or gradient are explained."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trainscope.core.finding import Severity
from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge

from .smoke_runs import STEPS, LayersInMemory, found, ones, single, skipped, smoke_run

ID = "update_norm"


def noisy(level: float = 1.0) -> np.ndarray:
    return level * np.exp(0.1 * np.random.default_rng(1).standard_normal(STEPS))


def test_a_leap_is_found_at_its_step():
    finding = single(ID, smoke_run({"optimizer/update_norm": noisy() * (1.0 + ones(90, 91, 4.0))}))
    assert finding.severity is Severity.WARNING
    assert (finding.start_step, finding.peak_step) == (90, 90)
    assert 4.0 < finding.evidence["ratio"] < 6.5


def test_an_update_that_follows_the_learning_rate_is_no_leap():
    rate = np.full(STEPS, 1e-3) * (1.0 + ones(90, 95, 29.0))
    assert found(ID, smoke_run({"optimizer/update_norm": noisy() * rate / 1e-3, "learning_rate": rate})) == []


def test_an_update_that_follows_the_gradient_is_left_to_the_gradient():
    burst = 1.0 + ones(90, 91, 9.0)
    series = {"optimizer/update_norm": noisy() * burst, "train/grad_norm_after_clip": noisy() * burst}
    assert found(ID, smoke_run(series)) == []


def test_momentum_may_carry_a_gradient_into_the_next_two_updates():
    series = {
        "optimizer/update_norm": noisy() * (1.0 + ones(91, 93, 6.0)),
        "train/grad_norm_after_clip": noisy() * (1.0 + ones(90, 91, 9.0)),
    }
    assert found(ID, smoke_run(series)) == []


def test_steps_that_a_scaler_refused_are_no_updates():
    assert found(ID, smoke_run({"optimizer/update_norm": np.where(np.arange(STEPS) % 30 == 0, 0.0, noisy())})) == []


def test_noise_alone_is_no_leap():
    assert found(ID, smoke_run({"optimizer/update_norm": noisy()})) == []


def test_the_layer_that_has_the_rise_is_named():
    update = {
        ("a.weight", "update_l2_norm"): noisy(),
        ("b.weight", "update_l2_norm"): noisy() * (1.0 + ones(90, 91, 8.0)),
    }
    whole = np.sqrt(sum(value**2 for value in update.values()))
    finding = single(ID, replace(smoke_run({"optimizer/update_norm": whole}), layers=LayersInMemory(update)))
    assert finding.layer == "b.weight"
    assert "of the rise is in b.weight, which rose" in finding.message


def test_beside_a_lost_state_it_is_evidence():
    counter = np.where(np.arange(STEPS) < 90, np.arange(STEPS), np.arange(STEPS) - 90) + 1.0
    run = smoke_run(
        {"optimizer/update_norm": noisy() * (1.0 + ones(90, 91, 4.0)), "smoke/optimizer_state_step": counter}
    )
    by = {f.detector: f for f in judge(run, configure(Settings(select=[ID, "optimizer_state"]))).findings}
    assert by["optimizer_state"].severity is Severity.ERROR
    assert by[ID].severity is Severity.INFO
    assert "It is part of what" in by[ID].message


def test_a_log_without_updates_is_skipped():
    assert skipped(ID, smoke_run({"optimizer/update_norm": None})).startswith("needs 30 points")
