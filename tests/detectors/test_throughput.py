from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Skipped

from .runs import EVERY, ROWS, at, falling, findings, judged, only, run_of


def seconds(seed: int = 0) -> np.ndarray:
    return np.asarray(0.5 * (1.0 + 0.04 * np.abs(np.random.default_rng(seed).normal(size=ROWS))))


def slow(begin: int = 240, end: int | None = None, factor: float = 2.0) -> np.ndarray:
    x = seconds()
    x[begin:end] *= factor
    return x


def stamped(x: np.ndarray) -> Run:
    """Return a run that has time stamps only."""
    loss = Series("train/loss", EVERY * np.arange(1, ROWS + 1), falling(), 1.7e9 + np.cumsum(x) * EVERY)
    return replace(run_of({}), series={"train/loss": loss})


@pytest.mark.parametrize(("begin", "end"), [(240, None), (120, 200), (300, 350)])
def test_a_slow_stretch_is_found_where_it_is(begin, end):
    found = only("throughput", run_of({"train/step_time": slow(begin, end)}))
    assert found.severity is Severity.WARNING
    assert abs(found.start_step - at(begin)) <= 10 * EVERY
    assert abs(found.end_step - at((end or ROWS) - 1)) <= 10 * EVERY
    assert found.evidence["ratio"] == pytest.approx(2.0, rel=0.1)
    assert ("to the end" in found.message) == (end is None)


@pytest.mark.parametrize("metric", ["train/tokens_per_second", "train/samples_per_second", "train/steps_per_second"])
def test_a_falling_rate_is_the_same_and_said_in_its_own_unit(metric):
    found = only("throughput", run_of({metric: 1000.0 / slow()}))
    assert found.metric == metric
    assert found.evidence["before"] == pytest.approx(2.0 * found.evidence["after"], rel=0.1)
    assert found.evidence["before"] > 1500.0


def test_time_stamps_serve_where_nothing_else_was_logged():
    found = only("throughput", stamped(slow()))
    assert found.metric is None
    assert abs(found.start_step - at(240)) <= 10 * EVERY
    assert findings("throughput", stamped(seconds())) == []


def test_time_stamps_without_steps_say_nothing():
    assert isinstance(judged("throughput", replace(stamped(slow()), x_axis="row")), Skipped)


def test_a_creep_is_found():
    found = only("throughput", run_of({"train/step_time": seconds() * np.linspace(1.0, 3.0, ROWS)}))
    assert at(80) <= found.start_step <= at(240)


@pytest.mark.parametrize(("factor", "expected"), [(1.2, 0), (1.3, 0), (1.6, 1)])
def test_what_shared_machines_vary_by_is_left_out(factor, expected):
    assert len(findings("throughput", run_of({"train/step_time": slow(factor=factor)}))) == expected


@pytest.mark.parametrize(("metric", "unit"), [("train/step_time", 1.0), ("train/step_time_ms", 1000.0), (None, 1.0)])
def test_a_slow_stretch_that_cost_seconds_is_an_information(metric, unit):
    def told(scale):
        x = scale * slow()
        return only("throughput", stamped(x) if metric is None else run_of({metric: unit * x}))

    # 160 points, ten steps each, half a second a step lost: 800 s.
    assert told(1.0).evidence["lost_seconds"] == pytest.approx(800.0, rel=0.05)
    assert [told(scale).severity for scale in (1.0, 0.05, 0.02)] == [Severity.WARNING, Severity.WARNING, Severity.INFO]


@pytest.mark.parametrize(
    ("begin", "end", "factor", "severity"),
    [
        (240, None, 3.0, Severity.WARNING),
        (240, None, 2.0, Severity.INFO),  # a busy neighbour
        (120, 280, 3.0, Severity.INFO),  # over
        (340, None, 3.0, Severity.INFO),  # too short to be sure
    ],
)
def test_a_short_run_that_stays_far_slower_to_its_end_is_a_warning(begin, end, factor, severity):
    found = only("throughput", run_of({"train/step_time": 0.001 * slow(begin, end, factor)}))
    assert found.severity is severity


def test_how_much_slower_counts_is_a_parameter():
    run = run_of({"train/step_time": slow(factor=1.3)})
    assert len(findings("throughput", run, slower=1.2)) == 1
    assert findings("throughput", run_of({"train/step_time": slow()}), slower=3.0) == []


def test_compilation_evaluations_and_checkpoints_are_left_out():
    x = seconds()
    x[:8] *= 50.0
    x[49::50] *= 20.0
    assert findings("throughput", run_of({"train/step_time": x})) == []


def test_a_few_slow_steps_are_left_out():
    assert findings("throughput", run_of({"train/step_time": slow(200, 206)})) == []


def test_a_run_that_got_faster_is_left_alone():
    assert findings("throughput", run_of({"train/step_time": slow(0, 15)})) == []


def test_a_run_without_time_is_skipped():
    assert isinstance(judged("throughput", run_of({"train/loss": falling()})), Skipped)
    few = judged("throughput", run_of({"train/step_time": np.ones(29)}))
    assert few == Skipped("needs 30 points of train/step_time, has 29")


def test_known_false_positive_a_curriculum_of_growing_sequences():
    """Each step does twice the work from the middle on, and takes twice as long."""
    found = only("throughput", run_of({"train/step_time": slow(200)}))
    assert found.severity is Severity.WARNING


def test_a_step_that_does_as_much_more_is_not_slow():
    grown = np.linspace(1.0, 3.0, ROWS)
    time = 0.5 * grown
    assert len(findings("throughput", run_of({"train/step_time": time}))) == 1
    assert findings("throughput", run_of({"train/step_time": time, "seq_len": 512.0 * grown})) == []
    counted = np.cumsum(512.0 * grown)
    assert findings("throughput", run_of({"train/step_time": time, "consumed tokens": counted})) == []


def test_a_step_that_does_the_same_is_slow():
    time = 0.5 * np.where(np.arange(ROWS) < 240, 1.0, 2.0)
    run = run_of({"train/step_time": time, "seq_len": 512.0 * np.linspace(1.0, 1.2, ROWS)})
    assert len(findings("throughput", run)) == 1
