"""What the recorder costs: the same training with and without it, interleaved step by step.

    python bench/recorder_overhead.py [--models small,large] [--steps 100] [--check]

Every variant has its own identical model; each round trains all of them one step on one batch, in an order
that rotates, so that noise from other programs hits all alike. The figure is process CPU time, which other
programs do not lengthen much, as mean over the steps (a median would hide the steps that sample) against
the bare training. With ``--check`` the exit status is 1 where a limit is passed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # waiting threads of the matrix library would count as work

import torch
from gpt import GPT, LARGE, SMALL, batch

from trainscope import TrainScope, TrainScopeConfig

LIMITS = {
    ("small", "default"): 1.10,
    ("small", "activations every step"): 1.25,
    ("large", "default"): 1.03,
    ("large", "activations every step"): 1.08,
}
VARIANTS = {"bare": None, "default": {}, "activations every step": {"activation_metrics_every_n_steps": 1}}


class Variant:
    """One training: bare, or with a recorder."""

    def __init__(self, name, shape, settings, folder):
        torch.manual_seed(0)
        self.name, self.model = name, GPT(**shape)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4)
        self.scope = None
        if settings is not None:
            config = TrainScopeConfig(run_dir=folder, run_name=name.replace(" ", "_"), **settings)
            self.scope = TrainScope(self.model, self.optimizer, config).attach()
        self.seconds = []

    def step(self, number, tokens, targets):
        """Train one step and note its CPU time."""
        begun = time.process_time()
        self.optimizer.zero_grad()
        loss = self.model(tokens, targets)
        loss.backward()
        value = loss.item()
        if self.scope is not None:
            self.scope.step(value, batch_index=number)
        self.optimizer.step()
        self.seconds.append(time.process_time() - begun)


def measure(model, steps, warmup=10):
    shape = SMALL if model == "small" else LARGE
    with tempfile.TemporaryDirectory() as folder:
        variants = [Variant(name, shape, settings, folder) for name, settings in VARIANTS.items()]
        for number in range(warmup + steps):
            tokens, targets = batch(number, 8, shape["length"])
            for turn in range(len(variants)):
                variants[(number + turn) % len(variants)].step(number, tokens, targets)
        for variant in variants:
            if variant.scope is not None:
                variant.scope.detach()
                assert not variant.scope.faults, variant.scope.faults
    return {variant.name: variant.seconds[warmup:] for variant in variants}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="small,large")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="exit with 1 where a limit is passed")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    passed = True
    print(f"{'model':7s}{'variant':26s}{'ms CPU':>9s}{'median':>9s}{'mean x':>9s}{'median x':>10s}{'limit':>8s}")
    for model in options.models.split(","):
        seconds = measure(model, options.steps)
        bare = seconds["bare"]
        for name, values in seconds.items():
            ratio = statistics.fmean(values) / statistics.fmean(bare)
            middle = statistics.median(values) / statistics.median(bare)
            limit = LIMITS.get((model, name))
            passed &= limit is None or ratio <= limit
            print(
                f"{model:7s}{name:26s}{1e3 * statistics.fmean(values):9.2f}"
                f"{1e3 * statistics.median(values):9.2f}{ratio:9.3f}{middle:10.3f}"
                f"{'' if limit is None else f'{limit:8.2f}'}"
            )
    if hasattr(os, "getloadavg"):
        print(f"load {os.getloadavg()[0]:.1f}, {options.steps} steps, {options.threads} threads")
    if options.check and not passed:
        sys.exit(1)


if __name__ == "__main__":
    main()
