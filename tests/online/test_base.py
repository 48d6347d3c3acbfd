"""What a detector of one's own needs."""

import pytest

from trainscope.online import AnomalyDetector

from .series import alarms


def test_a_plug_in_needs_only_warmup_and_update():
    class Above(AnomalyDetector):
        warmup = 2

        def update(self, value):
            return value if value > 3 else None

    assert alarms(Above(), [1, 4, 2]) == [1]
    with pytest.raises(TypeError):
        AnomalyDetector()
