"""Whether the recorder stays the same over a long run: memory, time of a step, files on disk.

    python bench/recorder_soak.py [--steps 100000]

Trains a tiny model with the recorder's defaults, a tenth of the run at a time, and prints for each tenth the
median CPU time of a step and of the recorder in it, the longest, resident memory, and what the run's folder
holds. Then the first tenth is compared with the last.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from torch import nn

from trainscope import TrainScope, TrainScopeConfig
from trainscope.probe.process import cpu_memory_mb


class Tenth:
    """What was measured in a tenth of the run."""

    def __init__(self, folder):
        self.steps, self.recorder = [], []
        self.memory = cpu_memory_mb()
        self.folder = folder

    def end(self):
        """Look at memory and disk."""
        files = [path for path in Path(self.folder).rglob("*") if path.is_file()]
        self.memory = cpu_memory_mb()
        self.files, self.megabytes = len(files), sum(path.stat().st_size for path in files) / 2**20
        return self

    def row(self):
        """Return the figures of one line."""
        middle = (1e3 * statistics.median(values) for values in (self.steps, self.recorder))
        return (*middle, 1e3 * max(self.recorder), self.memory, self.files, self.megabytes)


def train(steps, folder, tenths=10):
    """Train; yield each tenth of the run."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(50, 16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 50))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(1)
    with TrainScope(model, optimizer, TrainScopeConfig(run_dir=folder, run_name="soak")) as scope:
        for part in range(tenths):
            tenth = Tenth(folder)
            for step in range(part * steps // tenths, (part + 1) * steps // tenths):
                begun = time.process_time()
                tokens = torch.randint(50, (16,), generator=generator)
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(tokens), (tokens + 1) % 50)
                loss.backward()
                value = loss.item()
                before = time.process_time()
                scope.step(value, batch_index=step)
                after = time.process_time()
                optimizer.step()
                tenth.steps.append(time.process_time() - begun)
                tenth.recorder.append(after - before)
            yield tenth.end()
    assert not scope.faults, scope.faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'':8s}{'step ms':>9s}{'recorder':>10s}{'longest':>9s}{'RSS MB':>9s}{'files':>7s}{'MB':>8s}")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number, tenth in enumerate(train(options.steps, folder), 1):
            rows.append(tenth.row())
            step, recorder, longest, memory, files, size = rows[-1]
            print(
                f"{number:2d}/10   {step:9.3f}{recorder:10.3f}{longest:9.1f}{memory:9.1f}{files:7d}{size:8.1f}",
                flush=True,
            )
        closed = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 2**20
    (step, _, _, memory, *_), (last_step, _, _, last_memory, *_) = rows[0], rows[-1]
    print(
        f"{options.steps} steps: median step {step:.3f} ms in the first tenth, {last_step:.3f} in the last "
        f"({last_step / step:.2f} x); RSS {memory:.0f} MB at a tenth, {last_memory:.0f} at the end; "
        f"{closed:.1f} MB on disk when closed"
    )


if __name__ == "__main__":
    main()
