"""What the recorder costs: the same training with and without it, and how the cost grows.

    python bench/recorder_overhead.py [--models small,large] [--threads 1,2] [--steps 100] [--peer VENV_PYTHON]

Every variant has its own identical model. The variants of one process take turns step by step, in all orders one
after the other, so that noise from other programs, and what one variant leaves in the caches, hits all alike; with
``--peer`` a second process, in the other recorder's own environment, does the same, and the two take turns by blocks
of steps. Each recorder is compared with the bare training in its own process. The figure is process CPU time. The
limits are about the median, over the steps, of a step's time over that of the bare step of the same turn: a machine
whose clock changes under it moves both. Beside it the ratio of the two medians, and of the two means, which shows what
the steps that sample add.

Then the cost of a step is measured for models of 100, 1,000 and 10,000 small parameters, and early and late
in a run. The exit status is 1 where a limit is passed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # waiting threads of the matrix library would count as work
os.environ.setdefault("GOMP_SPINCOUNT", "0")

LIMITS = {
    ("small", "default"): 1.10,
    ("small", "activations every step"): 1.25,
    ("large", "default"): 1.03,
    ("large", "activations every step"): 1.08,
}
VARIANTS = {"bare": None, "default": {}, "activations every step": {"activation_metrics_every_n_steps": 1}}
WARMUP, BLOCK = 10, 10
SIZES = (100, 1_000, 10_000)
GROWTH_LIMIT, DRIFT_LIMIT = 1.2, 1.2
"""Cost of a parameter in the largest model over that in the middle one; cost of a late step over an early one."""


class Variant:
    """One training: bare, or with the recorder that is installed here."""

    def __init__(self, name, shape, settings, folder):
        import torch
        from gpt import GPT

        torch.manual_seed(0)
        self.model = GPT(**shape)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4)
        self.scope = None if settings is None else recorder(self.model, self.optimizer, folder, name, settings)

    def step(self, number, tokens, targets):
        """Train one step; return its CPU time."""
        begun = time.process_time()
        self.optimizer.zero_grad()
        loss = self.model(tokens, targets)
        loss.backward()
        value = loss.item()
        if self.scope is not None:
            self.scope.step(value, batch_index=number)
        self.optimizer.step()
        return time.process_time() - begun


def recorder(model, optimizer, folder, name, settings):
    from trainscope import TrainScope, TrainScopeConfig

    return TrainScope(
        model, optimizer, TrainScopeConfig(run_dir=folder, run_name=name.replace(" ", "_"), **settings)
    ).attach()


def worker(model, threads):
    """Train a block of steps for every line on stdin; answer with the CPU seconds of each variant."""
    import torch
    from gpt import LARGE, SMALL, batch

    torch.set_num_threads(threads)
    shape = SMALL if model == "small" else LARGE
    with tempfile.TemporaryDirectory() as folder:
        variants = {name: Variant(name, shape, settings, folder) for name, settings in VARIANTS.items()}
        orders = list(itertools.permutations(variants))
        number = 0
        for line in sys.stdin:
            seconds = {name: [] for name in variants}
            for _ in range(int(line)):
                tokens, targets = batch(number, 8, shape["length"])
                for name in orders[number % len(orders)]:
                    seconds[name].append(variants[name].step(number, tokens, targets))
                number += 1
            print(json.dumps(seconds), flush=True)
        for variant in variants.values():
            if variant.scope is not None:
                variant.scope.detach()
                if getattr(variant.scope, "faults", None):
                    sys.exit(f"the recorder had faults: {dict(variant.scope.faults)}")


def started(python, model, threads, *, ours):
    """Start a worker process."""
    environment = dict(os.environ)
    if not ours:
        environment.pop("PYTHONPATH", None)
    command = [python, __file__, "--worker", model, "--threads", str(threads)]
    quiet = None if ours else subprocess.DEVNULL
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet, text=True
    )


def measure(model, threads, steps, peer):
    """Return CPU seconds of every variant of every recorder: (recorder, variant) to a list."""
    workers = {"ours": started(sys.executable, model, threads, ours=True)}
    if peer is not None:
        workers["peer"] = started(peer, model, threads, ours=False)
    seconds = {}
    for begun in [None, *range(0, steps, BLOCK)]:
        for who, process in workers.items():
            process.stdin.write(f"{WARMUP if begun is None else min(BLOCK, steps - begun)}\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            if not answer:
                sys.exit(f"the worker of {who} ended early, status {process.wait()}")
            if begun is not None:
                for name, values in json.loads(answer).items():
                    seconds.setdefault((who, name), []).extend(values)
    for who, process in workers.items():
        process.stdin.close()
        if process.wait():
            sys.exit(f"the worker of {who} failed")
    return seconds


def report(model, threads, seconds):
    """Print one line a variant; return whether all limits are kept."""
    kept = True
    for (who, name), values in seconds.items():
        bare = seconds[who, "bare"]
        median, mean = statistics.median(values), statistics.fmean(values)
        ratio = statistics.median(mine / theirs for mine, theirs in zip(values, bare, strict=True))
        apart, mean_ratio = median / statistics.median(bare), mean / statistics.fmean(bare)
        limit = LIMITS.get((model, name)) if who == "ours" else None
        verdict = "" if limit is None else "ok" if ratio <= limit else "missed"
        kept &= verdict != "missed"
        print(
            f"| {model} | {threads} | {who} | {name} | {1e3 * median:.1f} "
            f"| {ratio:.3f} | {apart:.3f} | {mean_ratio:.3f} | {'' if limit is None else f'{limit:.2f}'} | {verdict} |",
            flush=True,
        )
    return kept


def cost_of(parameters, steps, folder):
    """Return CPU seconds of each recorded step of a model with so many parameters of 64 numbers."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.ParameterList(nn.Parameter(torch.randn(64)) for _ in range(parameters))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scope = recorder(model, optimizer, folder, f"parameters {parameters}", {})
    seconds = []
    for number in range(steps):
        for parameter in model:
            parameter.grad = torch.randn(64)
        begun = time.process_time()
        scope.step(1.0, batch_index=number)
        seconds.append(time.process_time() - begun)
        optimizer.step()
    scope.detach()
    return seconds


def growth():
    """Print how cost grows with parameters and with steps; return whether it stays within the limits."""
    with tempfile.TemporaryDirectory() as folder:
        costs = {size: cost_of(size, 440 if size == SIZES[1] else 60, folder) for size in SIZES}
    print("\n| parameters | ms a step, mean | us a parameter |\n| --- | --- | --- |")
    each = {}
    for size, values in costs.items():
        mean = statistics.fmean(values[WARMUP:])
        each[size] = mean / size
        print(f"| {size:,} | {1e3 * mean:.2f} | {1e6 * mean / size:.2f} |")
    ratio = each[SIZES[2]] / each[SIZES[1]]
    early, late = (statistics.fmean(costs[SIZES[1]][begin : begin + 200]) for begin in (40, 240))
    verdicts = ("ok" if ratio <= GROWTH_LIMIT else "missed", "ok" if late / early <= DRIFT_LIMIT else "missed")
    print(
        f"\na parameter of {SIZES[2]:,} costs {ratio:.2f} of one of {SIZES[1]:,} (limit {GROWTH_LIMIT}): {verdicts[0]}"
    )
    print(f"steps 240-439 cost {late / early:.2f} x steps 40-239 (limit {DRIFT_LIMIT}): {verdicts[1]}", flush=True)
    return "missed" not in verdicts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="small,large")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--peer", metavar="VENV_PYTHON", help="Python of an environment with the other recorder")
    parser.add_argument("--no-growth", action="store_true", help="leave out the growth with parameters and steps")
    parser.add_argument("--worker", metavar="MODEL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker, int(options.threads))
        return
    if options.peer is not None and not Path(options.peer).exists():
        parser.error(f"{options.peer}: no such file")
    load = [os.getloadavg()[0]] if hasattr(os, "getloadavg") else []
    print("| model | threads | recorder | variant | ms CPU | a step x | medians x | means x | limit | |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    kept = True
    for model in options.models.split(","):
        for threads in map(int, options.threads.split(",")):
            kept &= report(model, threads, measure(model, threads, options.steps, options.peer))
    if not options.no_growth:
        kept &= growth()
    if load:
        print(f"\n{options.steps} steps; load {load[0]:.1f} at the beginning, {os.getloadavg()[0]:.1f} at the end")
    if not kept:
        sys.exit(1)


if __name__ == "__main__":
    main()
