import pytest

from trainscope.core.config import TrainScopeConfig
from trainscope.probe import Boundary
from trainscope.recorder.live import Live

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("detector", ["changepoint", "expert_utilization_drift", "addressor_concentration_drift"])
def test_a_loss_that_leaps_is_a_spike_whatever_detector_is_chosen(detector):
    live = Live(TrainScopeConfig(detector=detector), (), Boundary())
    losses = [2.0 + 0.01 * (k % 7) for k in range(100)]
    assert [live.judge_loss(loss) for loss in losses] == [None] * 100
    spike = live.judge_loss(20.0)
    assert spike is not None
    assert spike.detector == "changepoint"
