"""Experts and addressors that take ever more."""

import pytest

from trainscope.online import make_detector

from .series import alarms


@pytest.mark.parametrize(
    ("name", "threshold"), [("expert_utilization_drift", 0.85), ("addressor_concentration_drift", 0.6)]
)
def test_concentration_must_last_three_steps_and_is_flagged_once(name, threshold):
    detector = make_detector(name, {})
    assert alarms(detector, [threshold] * 30) == []  # warm-up
    shares = [0.3, threshold, threshold, 0.3, threshold, threshold, threshold, threshold, 0.2]
    assert alarms(detector, shares) == [6]
    assert alarms(detector, [threshold] * 5) == [2]
