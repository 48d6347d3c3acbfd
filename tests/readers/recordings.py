"""A recorded run of a few steps, and how it is read."""

import numpy as np

from trainscope.core.config import TrainScopeConfig
from trainscope.readers import recorded
from trainscope.readers.source import open_source
from trainscope.store.block import LayerBlock
from trainscope.store.writer import RunWriter

NAMES = ("embed.weight", "head.bias")


def make(root, name, steps, *, close=True, **fields):
    config = TrainScopeConfig(run_dir=str(root), run_name=name, **fields)
    meta = {"model_name": "tiny", "hyperparameters": {"lr": 0.1, "adam": {"beta": 0.9}}, "n": float("nan")}
    writer = RunWriter.create(config, meta=meta)
    for step in steps:
        scalars = {
            "loss": 5.0 - step / 100,
            "grad_norm_before_clip": 2.0,
            "lr": 1e-3,
            "step_time_ms": 250.0,
            "batch_index": step if step else -1,
            "is_spike": step == 7,
            "spike_score": 9.0 if step == 7 else 0.0,
            "wall_time": 1e9 + step,
            "lr/group_1": 1e-4,
        }
        layers = LayerBlock(NAMES, {"grad_l2_norm": np.array([step, step + 0.5])})
        writer.append(step, scalars, layers, {"router": np.array([0.25, 0.75])}, [("mine", "x", float(step))])
    if close:
        writer.close()
    else:
        writer.flush()
    return writer.path


def read(path):
    source = open_source(path)
    assert recorded.sniff(source.head)
    return recorded.read_runs(source)
