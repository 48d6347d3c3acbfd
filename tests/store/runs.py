"""Makes small recorded runs whose every number is known."""

import numpy as np
import pyarrow as pa

from trainscope.core.config import TrainScopeConfig
from trainscope.store.block import LayerBlock
from trainscope.store.writer import RunWriter

NAMES = ("embed.weight", "blocks.0.mlp.weight", "head.bias")


def config(tmp_path, **fields):
    defaults = {"run_name": "a", "spike_window_before": 5, "spike_window_after": 3}
    return TrainScopeConfig(run_dir=str(tmp_path), **{**defaults, **fields})


def value(step, layer):
    return step + layer / 100


def block(step, names=NAMES, *, act_every=5, hist_every=50):
    n = len(names)
    columns = {"grad_l2_norm": np.array([value(step, j) for j in range(n)]), "weight_std": np.full(n, 0.5)}
    valid, histograms = None, None
    if step % act_every == 0:
        columns["act_mean"] = np.full(n, float(step))
        valid = {"act_mean": np.arange(n) % 2 == 0}
    if step % hist_every == 0:
        edges = np.tile(np.linspace(-1, 1, 5), (n, 1))
        edges[-1] = np.nan
        histograms = (np.full((n, 4), float(step)), edges)
    return LayerBlock(names, columns, valid, histograms)


def record(writer, steps, **options):
    for step in steps:
        writer.append(step, {"loss": 10.0 - step / 1000, "lr": 1e-3, "is_spike": False}, block(step, **options))


def make(tmp_path, steps, **fields):
    writer = RunWriter.create(config(tmp_path, **fields), meta={"model_name": "tiny"})
    record(writer, steps)
    return writer


def plain_read(path):
    """What anyone gets without trainscope."""
    with pa.OSFile(str(path)) as source:
        return pa.ipc.open_stream(source).read_all()


def check_layers(reader, steps):
    for j, name in enumerate(reader.layers()):
        at, got = reader.layer_points(name, "grad_l2_norm")
        assert at.tolist() == list(steps), name
        assert got.tolist() == [value(s, j) for s in steps]
