"""Values that are no numbers."""

import math

from trainscope.online import NonFinite

from .series import alarms


def test_non_finite_fires_once_for_each_stretch():
    values = [1.0] * 5 + [math.nan] * 30 + [1.0] * 25 + [math.inf] + [1.0, math.nan]
    assert alarms(NonFinite(), values) == [5, 60]
