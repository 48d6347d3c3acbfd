"""Loss scales that never find their place are found; a scaler that looks for one is left alone."""

from __future__ import annotations

import numpy as np

from trainscope.core.finding import Severity

from .smoke_runs import STEPS, found, single, skipped, smoke_run

ID = "loss_scale"
N = 400


def scaled(scale: object, refused: object = 0.0):
    return smoke_run(
        {"amp/grad_scale": np.broadcast_to(scale, N), "amp/step_skipped": np.broadcast_to(np.float64(refused), N)}
    )


def test_a_scale_that_falls_without_end_is_found():
    step = np.arange(N)
    finding = single(ID, scaled(4096.0 / 2.0 ** np.clip((step - 200) // 10, 0, 8)))
    assert finding.title == "Loss scale falls without end"
    assert finding.severity is Severity.WARNING
    assert (finding.start_step, finding.end_step) == (210, 280)
    assert finding.evidence == {"falls": 8, "before": 4096.0, "after": 16.0}


def test_a_scale_below_one_is_an_error():
    assert single(ID, scaled(64.0 / 2.0 ** np.clip((np.arange(N) - 200) // 10, 0, 9))).severity is Severity.ERROR


def test_coming_down_from_where_it_was_set_is_normal():
    assert found(ID, scaled(65536.0 / 2.0 ** np.minimum(np.arange(N), 16))) == []


def test_up_and_down_again_is_how_a_scaler_works():
    scale = np.where(np.arange(N) // 20 % 2 == 0, 1024.0, 2048.0)
    assert found(ID, scaled(scale, (np.arange(N) % 40 == 0).astype(float))) == []


def test_steps_that_are_refused_again_and_again_are_found():
    refused = (np.arange(N) >= 200) & (np.arange(N) % 10 == 0)
    finding = single(ID, scaled(1024.0, refused.astype(float)))
    assert finding.title == "Steps refused by the loss scale"
    assert finding.start_step == 200
    assert finding.evidence["share"] == 0.1


def test_a_refused_step_now_and_then_is_normal():
    assert found(ID, scaled(1024.0, (np.arange(N) % 50 == 0).astype(float))) == []


def test_a_run_without_a_scaler_is_skipped():
    assert skipped(ID, smoke_run()).startswith("needs the GradScaler")
    assert skipped(ID, smoke_run({"amp/grad_scale": np.full(STEPS - 60, 1.0)})).startswith("needs steps after")
