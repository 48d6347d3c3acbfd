from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.detectors.base import Lack, Skipped

from .runs import ROWS, findings, judged, only, run_of

ID = "memory_growth"
T = np.linspace(0.0, 1.0, ROWS)


@pytest.mark.parametrize("name", ["memory_allocated", "System/Peak GPU Memory(MB)", "max_mem", "rss"])
def test_memory_that_grows_to_the_end_is_found_under_its_usual_names(name):
    found = only(ID, run_of({name: 1000.0 * (1.0 + T)}))
    assert found.severity is Severity.WARNING
    assert found.evidence["ratio"] == pytest.approx(1.8, abs=0.1)
    assert "does not slow down" in found.message


def test_a_leak_that_begins_late_is_found():
    assert len(findings(ID, run_of({"rss": 1000.0 * (1.0 + np.clip(T - 0.3, 0.0, None))}))) == 1


def test_an_allocator_that_fills_up_is_left_out():
    assert findings(ID, run_of({"rss": 1000.0 * (2.0 - np.exp(-20.0 * T))})) == []


@pytest.mark.parametrize("seed", range(5))
def test_the_peak_of_steps_that_differ_is_left_out(seed):
    drawn = np.exp(0.5 * np.random.default_rng(seed).normal(size=ROWS))
    assert findings(ID, run_of({"max_mem": 1000.0 * np.maximum.accumulate(drawn)})) == []


def test_one_jump_is_no_growth():
    assert findings(ID, run_of({"rss": np.where(T < 0.6, 1000.0, 1500.0)})) == []


def test_a_curriculum_explains_its_memory():
    run = run_of({"memory_allocated": 1000.0 * (1.0 + T), "seq_len": 512.0 * (1.0 + T)})
    assert findings(ID, run) == []
    steady = run_of({"memory_allocated": 1000.0 * (1.0 + T), "seq_len": np.full(ROWS, 512.0)})
    assert len(findings(ID, steady)) == 1


def test_tokens_counted_so_far_tell_of_a_curriculum_too():
    counted = np.cumsum(512.0 * (1.0 + T))
    assert findings(ID, run_of({"memory_allocated": 1000.0 * (1.0 + T), "consumed tokens": counted})) == []


def test_little_growth_is_left_out_and_how_little_is_a_parameter():
    run = run_of({"rss": 1000.0 * (1.0 + 0.1 * T)})
    assert findings(ID, run) == []
    assert len(findings(ID, run, rise=0.05)) == 1


def test_free_memory_and_its_bandwidth_are_not_judged():
    run = run_of({"gpu_memory_free": 1000.0 * (1.0 + T), "memory_bandwidth": 1000.0 * (1.0 + T)})
    assert judged(ID, run) == Skipped("needs memory_allocated or the like")


def test_a_smoke_run_is_left_to_the_detectors_of_smoke_runs():
    run = replace(run_of({"memory/cpu_mb": 1000.0 * (1.0 + T)}), config={"smoke.steps": 50})
    reason = "memory of a smoke run is judged by graph_leak and against the baseline"
    assert judged(ID, run) == Skipped(reason, kind=Lack.DATA)
