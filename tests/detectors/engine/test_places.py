"""The layer that has most of a rise is named, and none where the rise is everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from trainscope.detectors.engine.places import place

from ..smoke_runs import STEPS, LayersInMemory, ones

METRIC = "grad_l2_norm"


def table(**layers: np.ndarray) -> LayersInMemory:
    return LayersInMemory({(name, METRIC): value for name, value in layers.items()})


def test_the_part_and_the_ratio_of_the_layer_are_exact():
    found = place(table(a=np.ones(STEPS), b=2.0 + ones(90, 92, 4.0)), METRIC, 90, 91)
    assert (found.layer, found.part, found.ratio) == ("b", 1.0, 3.0)
    assert found.said == "100 % of the rise is in b, which rose 3-fold."


def test_of_two_layers_the_one_with_more_of_the_squared_rise_is_named():
    found = place(table(a=1.0 + ones(90, 92), b=1.0 + ones(90, 92, 2.0)), METRIC, 90, 90)
    assert (found.layer, found.part) == ("b", pytest.approx(8 / 11))


def test_a_rise_of_all_layers_has_no_place():
    rise = 1.0 + ones(90, 92, 2.0)
    assert place(table(a=rise, b=rise, c=rise), METRIC, 90, 90) is None


def test_without_layers_a_rise_or_a_history_there_is_none():
    quiet = np.ones(STEPS)
    assert place(None, METRIC, 90, 90) is None
    assert place(table(a=quiet), "update_l2_norm", 90, 90) is None
    assert place(table(a=quiet), METRIC, 90, 90) is None
    assert place(table(a=1.0 + ones(3, value=5.0)), METRIC, 3, 3) is None
    assert place(table(a=np.where(np.arange(STEPS) == 90, np.inf, 1.0)), METRIC, 90, 90) is None
