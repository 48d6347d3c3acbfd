from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.detectors.base import Skipped

from .runs import ROWS, at, falling, findings, judged, norms, only, run_of
from .smoke_runs import STEPS, LayersInMemory, ones, smoke_run


@pytest.mark.parametrize("factor", [0.0, 1e-9, 1e-6])
@pytest.mark.parametrize("begin", [60, 200, 389])
def test_a_norm_that_is_gone_to_the_end_is_an_error_where_it_went(factor, begin):
    x = norms()
    x[begin:] *= factor
    found = only("grad_vanishing", run_of({"train/grad_norm": x}))
    assert found.severity is Severity.ERROR
    assert (found.start_step, found.peak_step, found.end_step) == (at(begin), at(begin), at(399))
    assert found.evidence["before"] == pytest.approx(np.median(x[:begin]))


@pytest.mark.parametrize(("length", "expected"), [(9, 0), (60, 0), (79, 0), (80, 1), (120, 1)])
def test_a_stretch_that_ends_must_be_a_fifth_of_the_run(length, expected):
    x = norms()
    x[150 : 150 + length] = 0.0
    assert len(findings("grad_vanishing", run_of({"train/grad_norm": x}))) == expected


@pytest.mark.parametrize(("length", "expected"), [(9, 0), (10, 1)])
def test_at_the_end_ten_points_are_enough(length, expected):
    x = norms()
    x[-length:] = 0.0
    assert len(findings("grad_vanishing", run_of({"train/grad_norm": x}))) == expected


def test_a_norm_that_falls_a_hundredfold_as_training_does_is_healthy():
    x = norms() * np.geomspace(1.0, 0.01, ROWS)
    assert findings("grad_vanishing", run_of({"train/grad_norm": x})) == []


def test_how_small_is_nothing_is_a_parameter():
    x = norms()
    x[200:] *= 0.005
    run = run_of({"train/grad_norm": x})
    assert findings("grad_vanishing", run) == []
    assert len(findings("grad_vanishing", run, ratio=0.05)) == 1


def test_a_norm_that_was_never_there_has_not_vanished():
    assert findings("grad_vanishing", run_of({"train/grad_norm": np.zeros(ROWS)})) == []


def test_too_few_points_are_skipped():
    assert judged("grad_vanishing", run_of({"train/loss": falling()})) == Skipped("needs train/grad_norm")
    few = run_of({"train/grad_norm": norms(29)})
    assert judged("grad_vanishing", few) == Skipped("needs 30 points of train/grad_norm")


def test_known_false_positive_a_task_that_is_solved_exactly():
    """A perceptron on separable data: no mistakes, no gradient, nothing wrong."""
    x = norms()
    x[250:] = 0.0
    assert only("grad_vanishing", run_of({"train/grad_norm": x})).severity is Severity.ERROR


def layered(**norms_: np.ndarray):
    """Return a recorded run whose gradient norm is that of these layers."""
    layers = {(name.replace("_", "."), "grad_l2_norm"): value for name, value in norms_.items()}
    whole = np.sqrt(sum(value**2 for value in layers.values()))
    return replace(smoke_run({"train/grad_norm": whole}), layers=LayersInMemory(layers))


def noisy(seed: int) -> np.ndarray:
    return np.exp(0.2 * np.random.default_rng(seed).standard_normal(STEPS))


def test_a_layer_whose_part_of_the_gradient_vanishes_is_named():
    found = only("grad_vanishing", layered(a=noisy(1), b=noisy(2) * (1.0 - ones(70, value=0.999))))
    assert (found.severity, found.title) == (Severity.WARNING, "Gradient of a layer vanishes")
    assert found.layer == "b"
    assert 65 <= found.start_step <= 85


def test_a_layer_that_learns_a_tenth_as_much_at_the_end_is_healthy():
    assert findings("grad_vanishing", layered(a=noisy(1), b=noisy(2) * (1.0 - ones(70, value=0.9)))) == []


def test_rounding_errors_of_a_bias_that_cancels_out_are_no_gradient():
    assert findings("grad_vanishing", layered(a=noisy(1), bias=1e-7 * noisy(2) * (1.0 - ones(70, value=0.9999)))) == []


def test_an_expert_without_tokens_is_the_matter_of_its_router():
    expert = noisy(2) * (1.0 - ones(70, value=0.9999))
    run = layered(a=noisy(1), b=noisy(3))
    layers = run.layers.values | {("mlp.experts.0.weight", "grad_l2_norm"): expert}
    assert findings("grad_vanishing", replace(run, layers=LayersInMemory(layers))) == []
