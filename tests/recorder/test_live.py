import numpy as np
import pytest

from trainscope import AnomalyDetector
from trainscope.core.config import TrainScopeConfig
from trainscope.probe import Boundary
from trainscope.recorder.live import Live, Noise, Spike

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("detector", ["changepoint", "expert_utilization_drift", "addressor_concentration_drift"])
def test_a_loss_that_leaps_is_a_spike_whatever_detector_is_chosen(detector):
    live = Live(TrainScopeConfig(detector=detector), (), Boundary())
    losses = [2.0 + 0.01 * (k % 7) for k in range(100)]
    assert [live.judge_loss(loss) for loss in losses] == [None] * 100
    spike = live.judge_loss(20.0)
    assert spike is not None
    assert spike.detector == "changepoint"


def test_grown_noise_is_no_spike_and_hides_none_of_a_plug_in():
    rng = np.random.default_rng(0)
    losses = (2.0 + 0.05 * rng.normal(size=500) * np.where(np.arange(500) < 400, 1.0, 4.0)).tolist()
    live = Live(TrainScopeConfig(), (), Boundary())
    said = [live.judge_loss(loss) for loss in losses]
    at = next(i for i, one in enumerate(said) if one is not None)
    assert isinstance(said[at], Noise)
    assert 400 < at < 460
    beside = Live(TrainScopeConfig(), (At(at),), Boundary())
    assert [beside.judge_loss(loss) for loss in losses][at] == Spike(1.5, "At")


class At(AnomalyDetector):
    def __init__(self, at):
        self.left = at

    def update(self, value):
        self.left -= 1
        return 1.5 if self.left == -1 else None
