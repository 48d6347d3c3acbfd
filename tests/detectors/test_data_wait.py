from __future__ import annotations

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.detectors.base import Skipped

from .runs import ROWS, findings, judged, only, run_of

ID = "data_wait"


def waited(share: float, n: int = ROWS, names: tuple[str, str] = ("data_time", "train/step_time")):
    rng = np.random.default_rng(0)
    whole = 0.5 * (1.0 + 0.05 * np.abs(rng.normal(size=n)))
    return run_of({names[0]: share * whole * np.exp(0.1 * rng.normal(size=n)), names[1]: whole})


@pytest.mark.parametrize(
    "names", [("data_time", "time"), ("train/data_time", "batch_time"), ("Data Time (s)", "train/step_time")]
)
def test_a_long_wait_is_told_with_its_share(names):
    found = only(ID, waited(0.45, names=names))
    assert found.severity is Severity.INFO
    assert found.evidence["share"] == pytest.approx(0.45, abs=0.02)
    assert "45% of a step" in found.message


def test_a_short_wait_is_left_out_and_how_short_is_a_parameter():
    assert findings(ID, waited(0.1)) == []
    assert len(findings(ID, waited(0.1), share=0.05)) == 1


def test_a_wait_longer_than_the_step_was_not_timed_with_it():
    assert only(ID, waited(3.0)).evidence["share"] == pytest.approx(0.75, abs=0.02)


def test_a_slow_start_alone_is_left_out():
    run = waited(0.1)
    value = run.series["data_time"].value
    value[: ROWS // 4] *= 5.0
    assert findings(ID, run) == []


def test_a_log_without_both_times_is_not_judged():
    assert judged(ID, run_of({"train/step_time": np.ones(ROWS)})) == Skipped("needs data_time")
    alone = Skipped("needs the time of a step beside data_time")
    assert judged(ID, run_of({"data_time": np.ones(ROWS)})) == alone
    short = Skipped("needs 20 steps with data_time and train/step_time, has 10")
    assert judged(ID, waited(0.5, n=10)) == short
