from __future__ import annotations

import numpy as np

from trainscope.core.finding import Severity
from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge

from ..runs import at, falling, game, norms, run_of


def judged(metrics: dict[str, np.ndarray], **settings: object) -> dict[str, Severity]:
    found = judge(run_of(metrics), configure(Settings(**settings))).findings
    return {f.detector: f.severity for f in found}


def burst(metric: np.ndarray, index: int, factor: float) -> np.ndarray:
    metric[index : index + 4] *= factor
    return metric


def test_an_explosion_beside_a_spike_of_the_loss_is_information_that_names_it():
    metrics = {"train/loss": burst(falling(), 202, 1.5), "train/grad_norm": burst(norms(), 202, 30.0)}
    assert judged(metrics) == {"spikes": Severity.WARNING, "grad_norm": Severity.INFO}
    found = judge(run_of(metrics), configure(Settings())).findings
    assert found[-1].message.endswith(f"It is part of what train/loss shows from step {at(202)} on (loss spike).")
    assert found[-1].evidence["points"] == 4


def test_an_explosion_that_comes_before_the_spike_is_the_first_sign_and_stays_a_warning():
    metrics = {"train/loss": burst(falling(), 204, 1.5), "train/grad_norm": burst(norms(), 200, 30.0)}
    assert judged(metrics) == {"spikes": Severity.WARNING, "grad_norm": Severity.WARNING}


def test_an_explosion_that_no_loss_follows_stays_a_warning():
    metrics = {"train/loss": falling(), "train/grad_norm": burst(norms(), 200, 30.0)}
    assert judged(metrics) == {"grad_norm": Severity.WARNING}


def test_an_explosion_long_before_the_spike_is_an_event_of_its_own():
    metrics = {"train/loss": burst(falling(), 300, 1.5), "train/grad_norm": burst(norms(), 200, 30.0)}
    assert judged(metrics) == {"spikes": Severity.WARNING, "grad_norm": Severity.WARNING}


def test_a_drift_of_the_norm_is_never_part_of_a_spike():
    drift = norms()
    drift[160:] *= np.geomspace(1.0, 100.0, len(drift) - 160)
    metrics = {"train/loss": burst(falling(), 165, 1.5), "train/grad_norm": drift}
    assert judged(metrics)["grad_norm"] is Severity.WARNING


def test_a_severity_that_was_asked_for_stands():
    metrics = {"train/loss": burst(falling(), 202, 1.5), "train/grad_norm": burst(norms(), 200, 30.0)}
    found = judged(metrics, detectors={"grad_norm": {"severity": "error"}})
    assert found == {"spikes": Severity.WARNING, "grad_norm": Severity.ERROR}


def test_a_lost_game_is_one_warning_though_the_losers_loss_rises():
    metrics = game(won=200)
    metrics["G_A"][200:] *= 2.0
    found = judged(metrics)
    assert found.pop("gan_imbalance") is Severity.WARNING
    assert found == {}
