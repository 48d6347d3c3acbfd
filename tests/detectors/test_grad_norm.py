from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.detectors.base import MOST, Skipped

from .runs import ROWS, at, falling, findings, judged, norms, only, run_of
from .smoke_runs import STEPS, LayersInMemory, ones, smoke_run


def grad_norm(x: np.ndarray, **params: object) -> list:
    return findings("grad_norm", run_of({"train/grad_norm": x}), **params)


@pytest.mark.parametrize(
    ("points", "ratio", "severity"),
    [
        (1, 20.0, Severity.INFO),
        (2, 20.0, Severity.INFO),
        (3, 20.0, Severity.WARNING),
        (1, 100.0, Severity.WARNING),
        (8, 9.0, Severity.WARNING),
    ],
)
def test_one_batch_is_information_and_a_burst_or_a_fiftyfold_peak_a_warning(points, ratio, severity):
    x = norms()
    usual = float(np.median(x[175:200]))
    x[200 : 200 + points] = ratio * usual * np.linspace(1.0, 1.2, points)
    (found,) = grad_norm(x)
    assert found.severity is severity
    assert (found.start_step, found.peak_step) == (at(200), at(199 + points))
    assert found.evidence["points"] == points
    assert found.evidence["ratio"] == pytest.approx(ratio * (1.2 if points > 1 else 1.0), rel=0.05)


def test_natural_peaks_are_left_out():
    x = norms()
    x[[100, 200, 300]] *= 3.0
    assert grad_norm(x) == []


def test_the_ratios_are_parameters():
    x = norms()
    x[200] *= 20.0
    assert [f.severity for f in grad_norm(x, single=10.0)] == [Severity.WARNING]
    assert grad_norm(x, burst=100.0) == []


def test_many_peaks_are_cut_to_the_worst_and_counted():
    x = norms(n=800)
    x[range(30, 780, 50)] *= np.linspace(10.0, 40.0, 15)
    found = grad_norm(x)
    assert len(found) == MOST
    assert "one of 15 in this run" in found[0].message


@pytest.mark.parametrize("growth", [30.0, 200.0])
def test_a_drift_is_one_warning_from_where_it_began(growth):
    x = norms()
    x[160:] *= np.geomspace(1.0, growth, ROWS - 160)
    found = only("grad_norm", run_of({"train/grad_norm": x}))
    assert found.title == "Gradient norm drifts up"
    assert found.severity is Severity.WARNING
    assert at(130) <= found.start_step <= at(230)
    assert found.evidence["ratio"] == pytest.approx(growth, rel=0.5)


@pytest.mark.parametrize("growth", [1.0, 3.0, 5.0])
def test_the_growth_of_a_long_healthy_run_is_no_warning(growth):
    x = norms()
    x[40:] *= np.geomspace(1.0, growth, ROWS - 40)
    assert [f.severity for f in grad_norm(x)] == ([Severity.INFO] if growth > 3.0 else [])


def test_a_norm_that_moved_and_then_sticks_is_clipped_at_every_step():
    x = norms()
    x[150:] = 1.0
    (found,) = grad_norm(x)
    assert (found.title, found.severity) == ("Every step is clipped", Severity.WARNING)
    assert (found.start_step, found.end_step) == (at(150), at(399))
    assert found.evidence == {"value": 1.0, "points": 250}


def test_a_norm_that_never_moved_is_logged_after_clipping():
    (found,) = grad_norm(np.full(ROWS, 1.0))
    assert (found.title, found.severity) == ("Gradient norm is constant", Severity.INFO)


def test_a_short_stretch_of_equal_values_is_nothing():
    x = norms()
    x[150:190] = 1.0
    assert [f.title for f in grad_norm(x)] == []


def test_a_norm_of_0_throughout_is_no_clipping():
    assert grad_norm(np.zeros(ROWS)) == []


def test_norms_of_parts_are_judged_where_there_is_no_global_one():
    x = norms()
    x[200:205] *= 50.0
    found = only("grad_norm", run_of({"decoder/grad_norm": x, "encoder/grad_norm": norms()}))
    assert found.metric == "decoder/grad_norm"


def test_a_run_without_a_norm_is_skipped():
    assert judged("grad_norm", run_of({"train/loss": falling()})) == Skipped("needs train/grad_norm")


def test_known_miss_an_explosion_in_the_first_eight_points():
    x = norms()
    x[3:7] *= 50.0
    assert [f for f in grad_norm(x) if f.severity >= Severity.WARNING] == []


def test_known_false_positive_a_fine_tuning_that_starts_from_a_solved_task():
    """The gradient is next to nothing until the new task begins to pull."""
    x = norms() * np.geomspace(0.02, 1.0, ROWS)
    x[:100] = x[100] * norms(100, seed=5) / 3.0
    (found,) = grad_norm(x)
    assert found.title == "Gradient norm drifts up"


def test_a_slow_growth_over_half_of_the_run_is_information():
    growing = norms() * np.exp(np.maximum(0.0, np.linspace(-0.7, 1.6, ROWS)))
    (finding,) = grad_norm(growing)
    assert (finding.severity, finding.title) == (Severity.INFO, "Gradient norm grows")


def test_what_grows_after_an_explosion_is_no_slow_growth():
    x = norms() * np.exp(np.maximum(0.0, np.linspace(-0.7, 1.6, ROWS)))
    x[ROWS // 2 : ROWS // 2 + 4] *= 100.0
    assert [f.title for f in grad_norm(x)] == ["Gradient norm explodes"]


def test_a_growth_that_is_as_large_but_short_passes():
    growing = norms() * np.exp(np.maximum(0.0, np.linspace(-3.0, 1.6, ROWS)))
    assert grad_norm(growing) == []


def test_the_layer_of_an_explosion_is_named_where_layers_were_recorded():
    level = 1.0 + 0.05 * np.random.default_rng(0).random(STEPS)
    layers = {("a", "grad_l2_norm"): level, ("b", "grad_l2_norm"): level * (1.0 + ones(90, 95, 40.0))}
    whole = np.sqrt(sum(value**2 for value in layers.values()))
    run = smoke_run({"train/grad_norm": whole, "train/grad_norm_after_clip": None})
    (finding,) = findings("grad_norm", replace(run, layers=LayersInMemory(layers)))
    assert finding.layer == "b"
    assert "100 % of the rise is in b, which rose" in finding.message
