"""What holds for every detector of recorded facts: its fault is found, health is quiet, absence is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge

from .runs import falling, run_of
from .smoke_runs import SMOKE_PLANTED, STEPS, found, skipped, smoke_run

EACH = pytest.mark.parametrize("detector", SMOKE_PLANTED)


@EACH
def test_a_healthy_smoke_run_gets_no_finding(detector):
    run = smoke_run({"smoke/eval_cross_entropy": None})
    if detector == "train_eval_gap":
        assert "evaluations" in skipped(detector, run)
    elif detector == "loss_scale":
        assert found(detector, smoke_run({"amp/grad_scale": np.full(STEPS, 65536.0)})) == []
    else:
        assert found(detector, run) == []


@EACH
def test_the_planted_fault_is_found_by_its_own_detector(detector):
    assert {f.detector for f in found(detector, SMOKE_PLANTED[detector])} == {detector}
    assert all(f.fixes for f in found(detector, SMOKE_PLANTED[detector]))


@EACH
def test_no_other_exact_detector_takes_the_fault_for_its_own(detector):
    said = {f.detector for f in judge(SMOKE_PLANTED[detector], configure(Settings())).findings}
    assert said & set(SMOKE_PLANTED) == {detector}


@EACH
def test_a_plain_log_is_skipped_with_a_reason(detector):
    reason = skipped(detector, run_of({"train/loss": falling()}))
    assert any(words in reason for words in ("trainscope smoke", "smoke run", "recorder", "recorded run"))


@EACH
def test_a_smoke_run_that_lacks_every_series_breaks_nothing(detector):
    bare = replace(smoke_run(), series={})
    judge(bare, configure(Settings()))


def test_the_wall_time_of_a_smoke_run_is_not_judged():
    assert "wall time" in skipped("throughput", smoke_run())
