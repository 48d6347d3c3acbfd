"""What holds for every detector that can be named, and what is said of a wrong name or parameter."""

import inspect
import math

import numpy as np
import pytest

from trainscope.core.errors import ConfigError
from trainscope.online import ONLINE, AnomalyDetector, make_detector

from .series import alarms


@pytest.mark.parametrize("name", ONLINE)
def test_non_finite_values_raise_nothing_and_leave_no_mark(name):
    detector = make_detector(name, {})
    x = 0.3 + 0.01 * np.random.default_rng(0).normal(size=300)
    x[[10, 100, 200]] = [math.nan, math.inf, -math.inf]
    assert alarms(detector, x) == []


@pytest.mark.parametrize("name", ["changepoint", "z_score", "percentile"])
def test_every_loss_detector_finds_a_lasting_leap_and_says_so_once(name):
    x = 2 + 0.05 * np.random.default_rng(0).normal(size=330)
    x[300:] += 1.0
    found = alarms(make_detector(name, {}), x)
    assert 300 <= found[0] <= 303
    assert len([i for i in found if i >= 300]) <= 2


@pytest.mark.parametrize("name", ["changepoint", "z_score", "percentile"])
def test_every_loss_detector_ignores_a_sudden_fall(name):
    x = 2 + 0.05 * np.random.default_rng(1).normal(size=400)
    x[300:] -= 1.0
    assert [i for i in alarms(make_detector(name, {}), x) if i >= 300] == []


@pytest.mark.parametrize("name", ONLINE)
def test_every_detector_keeps_the_frozen_surface(name):
    detector = make_detector(name, {})
    assert isinstance(detector, AnomalyDetector)
    assert isinstance(detector.warmup, int)
    assert list(inspect.signature(detector.update).parameters) == ["value"]


@pytest.mark.parametrize(
    ("name", "params", "said"),
    [
        ("changepont", {}, "did you mean 'changepoint'"),
        ("z_score", {"treshold": 3.0}, "did you mean 'threshold'"),
        ("z_score", {"window": 2.5}, "expected int"),
        ("z_score", {"robust": 1}, "expected bool"),
        ("z_score", {"threshold": "high"}, "expected float"),
        ("z_score", {"threshold": -1.0}, "must not be negative"),
        ("changepoint", {"window": 10**12}, "window = 1000000000000: must not exceed 100000"),
        ("changepoint", {"warmup": 0}, "warmup = 0: must be at least 5"),
        ("z_score", {"warmup": 1}, "warmup = 1: must be at least 2"),
        ("percentile", {"warmup": 0}, "warmup = 0: must be at least 2"),
        ("percentile", {"upper": 1000.0}, "upper = 1000.0: must not exceed 100"),
        ("percentile", {"run_steps": 0}, "run_steps = 0: must be at least 1"),
        ("expert_utilization_drift", {"run_steps": 0}, "run_steps = 0: must be at least 1"),
    ],
)
def test_a_wrong_detector_or_parameter_is_named(name, params, said):
    with pytest.raises(ConfigError, match=said) as error:
        make_detector(name, params)
    assert str(error.value).startswith("detector")
