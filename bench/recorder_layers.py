"""What the store adds to a training step where the model has ten thousand parameters.

    python bench/recorder_layers.py [--layers 10000] [--steps 450]

Hands the writer what a recorded step of such a model has (16 statistics a layer, 24 with activations every
5 steps, histograms every 50), marks one spike, and prints the CPU time of the longest steps: those that write
ten steps at once, and those that fold, thin or write a spike window meanwhile. CPU time, because other
programs lengthen a step of the clock.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time

import numpy as np

from trainscope.core.config import TrainScopeConfig
from trainscope.store import schema
from trainscope.store.block import LayerBlock
from trainscope.store.writer import FLUSH_STEPS, RunWriter

WINDOW = 200
ACTIVATIONS = [name for name in schema.LAYER_COLUMNS if name.startswith("act")]
ALWAYS = [name for name in schema.LAYER_COLUMNS if not name.startswith(("act", "attn"))]


def blocks(layers, steps):
    """Yield step and block, from the same few arrays: making numbers is not what is measured."""
    names = tuple(f"model.layers.{i}.self_attn.q_proj.weight" for i in range(layers))
    rng = np.random.default_rng(0)
    column = {name: rng.normal(size=layers) for name in (*ALWAYS, *ACTIVATIONS)}
    histograms = (np.ones((layers, 16)), np.tile(np.linspace(-1, 1, 17), (layers, 1)))
    for step in range(steps):
        sampled = (*ALWAYS, *(ACTIVATIONS if step % 5 == 0 else ()))
        yield step, LayerBlock(names, {n: column[n] for n in sampled}, None, histograms if step % 50 == 0 else None)


def measure(layers, steps, folder):
    """Return the CPU seconds of each step that flushes, of each other step, and of closing."""
    writer = RunWriter.create(TrainScopeConfig(run_dir=folder, full_resolution_window=WINDOW), meta={})
    flushing, between = [], []
    for step, block in blocks(layers, steps):
        begun = time.process_time()
        writer.append(step, {"loss": 1.0}, block)
        if step == steps // 2:
            writer.mark_spike(step, 9.0)
        if step % FLUSH_STEPS != FLUSH_STEPS - 1:
            writer.work()
        spent = time.process_time() - begun
        (between if step % FLUSH_STEPS != FLUSH_STEPS - 1 else flushing).append(spent)
    begun = time.process_time()
    writer.close()
    return flushing, between, time.process_time() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=450)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        flushing, between, closing = measure(options.layers, options.steps, folder)
    for what, values in (("steps that flush", flushing), ("steps between", between)):
        ordered = 1e3 * np.sort(values)
        print(
            f"{what:18s} median {np.median(ordered):6.1f} ms, 99 % {np.quantile(ordered, 0.99):6.1f}, "
            f"longest {', '.join(f'{v:.1f}' for v in ordered[:-4:-1])}"
        )
    total = 1e3 * (sum(flushing) + sum(between)) / options.steps
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"mean {total:.1f} ms a step, closing {closing:.1f} s, peak memory {peak:.0f} MB")


if __name__ == "__main__":
    main()
