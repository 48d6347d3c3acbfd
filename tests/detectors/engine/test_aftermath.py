from __future__ import annotations

from dataclasses import replace

import numpy as np

from trainscope.core.finding import Severity
from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge

from ..runs import at, falling, game, norms, run_of
from ..smoke_runs import STEPS, LayersInMemory, ones, smoke_run


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


def of_recording(series: dict[str, object], *ids: str, layers: object = None) -> dict[str, Severity]:
    run = smoke_run(series)
    run = run if layers is None else replace(run, layers=layers)
    return {f.detector: f.severity for f in judge(run, configure(Settings(select=list(ids)))).findings}


def test_a_stale_second_moment_beside_a_bad_batch_is_evidence():
    layers = LayersInMemory({("tokens", "rms_t"): 1.0 + ones(100, 101, 2.0)})
    batch = {"batch/repetition": 0.1 + ones(100, 102, 0.9)}
    ids = ("stale_moments", "bad_batch")
    assert of_recording(batch, *ids, layers=layers)["stale_moments"] is Severity.INFO
    assert of_recording({}, *ids, layers=layers) == {"stale_moments": Severity.WARNING}


def test_a_loss_scale_that_falls_into_gradients_that_are_not_finite_is_one_incident():
    scale = 1024.0 / 2.0 ** np.clip(np.arange(STEPS) - 105, 0, 40)
    norm = np.where(np.arange(STEPS) < 120, 1.0, np.nan)
    ids = ("loss_scale", "non_finite")
    found = of_recording({"amp/grad_scale": scale, "train/grad_norm": norm}, *ids)
    assert found == {"loss_scale": Severity.INFO, "non_finite": Severity.ERROR}
    assert of_recording({"amp/grad_scale": scale}, *ids) == {"loss_scale": Severity.ERROR}


def test_a_layer_without_gradient_beside_collapsed_weights_is_evidence_and_a_whole_norm_is_not():
    fading = 1.0 - ones(70, value=0.9999)
    layers = LayersInMemory({("a", "grad_l2_norm"): np.ones(STEPS), ("b", "grad_l2_norm"): fading})
    weights = {"model/weight_norm": 16.0 * np.exp(-np.arange(STEPS) / 60.0), "train/grad_norm": np.hypot(1.0, fading)}
    found = of_recording(weights, "grad_vanishing", "weight_norm", layers=layers)
    assert found == {"weight_norm": Severity.ERROR, "grad_vanishing": Severity.INFO}
    gone = {"model/weight_norm": weights["model/weight_norm"], "train/grad_norm": fading**4}
    assert of_recording(gone, "grad_vanishing", "weight_norm")["grad_vanishing"] is Severity.ERROR
