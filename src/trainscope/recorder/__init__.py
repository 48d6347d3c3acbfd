"""Records a live PyTorch run: what happens in which layer, and the state to replay it from."""

from trainscope.recorder.plugins import MetricPlugin
from trainscope.recorder.scope import TrainScope
from trainscope.recorder.snapshot import load_rng_state, restore_rng_state
from trainscope.recorder.stop import StopTraining

__all__ = ["MetricPlugin", "StopTraining", "TrainScope", "load_rng_state", "restore_rng_state"]
