"""How often the default live detector calls a healthy training a spike.

    python bench/recorder_quiet.py [--seeds 10] [--steps 1500]

Trains the small GPT on random windows of real text, once for each seed, half of them with a constant
learning rate and clipping and half with warm-up and cosine decay, with the recorder attached. Every spike
is a false alarm.
"""

from __future__ import annotations

import argparse
import math
import tempfile

import torch
from gpt import GPT, SMALL, batch

from trainscope import TrainScope, TrainScopeConfig


def healthy(seed, steps, folder, every=1_000_000, shape=SMALL):
    """Train; return the steps that were called spikes, and the first and last loss."""
    torch.manual_seed(seed)
    model = GPT(**shape)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    # The loss is what is judged: layers are recorded seldom, to save time.
    config = TrainScopeConfig(run_dir=folder, run_name=f"seed_{seed}", trace_every_n_steps=every)
    spikes, losses = [], []
    with TrainScope(model, optimizer, config) as scope:
        for step in range(steps):
            if seed % 2:
                share = min(1.0, (step + 1) / 100) * (0.55 + 0.45 * math.cos(math.pi * step / steps))
                optimizer.param_groups[0]["lr"] = 1e-3 * share
            optimizer.zero_grad()
            loss = model(*batch(step, 8, shape["length"], seed))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            losses.append(loss.item())
            spike = scope.step(losses[-1], batch_index=step)
            if spike is not None:
                spikes.append(spike["step"])
            optimizer.step()
    return spikes, losses[0], losses[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=1500)
    options = parser.parse_args()
    alarms = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seeds):
            spikes, first, last = healthy(seed, options.steps, folder)
            alarms += len(spikes)
            print(f"seed {seed}: loss {first:.3f} -> {last:.3f}, spikes {spikes}", flush=True)
    print(f"{alarms} false alarms in {options.seeds * options.steps} steps")


if __name__ == "__main__":
    main()
