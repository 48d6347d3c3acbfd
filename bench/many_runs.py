"""What a report over many recorded runs costs: CPU time and memory of the whole command.

    python bench/many_runs.py [--runs 200] [--steps 1000] [--repeat 2] [--keep FOLDER]

Writes runs with the recorder's own store: 30 parameters and 6 modules with the statistics that the recorder keeps,
weight histograms every 50 steps, activations every 5, the retention of the defaults. A third of them break: a learning
rate that jumps, bad batches, NaN. The report is a process of its own; its CPU time is that of the process and its
children, its memory the largest it held. The exit status is 1 where a limit is passed, or the report misses a fault.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from trainscope.core.config import TrainScopeConfig
from trainscope.store.block import LayerBlock
from trainscope.store.schema import LAYER_COLUMNS
from trainscope.store.writer import RunWriter

LIMIT_SECONDS, LIMIT_MB = 20.0, 1_000.0
"""For 200 runs of 1,000 steps."""
BLOCKS = 4
PARAMETERS = (
    "tok_emb.weight",
    "pos_emb.weight",
    *(
        f"blocks.{b}.{name}"
        for b in range(BLOCKS)
        for name in ("attn.qkv.weight", "attn.proj.weight", "ln.weight", "mlp.0.weight", "mlp.0.bias", "mlp.2.weight")
    ),
    "ln_f.weight",
    "ln_f.bias",
    "head.weight",
    "head.bias",
)
MODULES = (*(f"blocks.{b}.mlp" for b in range(BLOCKS)), "tok_emb", "head")
NAMES = PARAMETERS + MODULES
OF_PARAMETERS = LAYER_COLUMNS[:12]
OF_OPTIMIZER = ("adam_m_norm", "adam_v_norm", "rms_t")
OF_MODULES = tuple(name for name in LAYER_COLUMNS if name.startswith("act_") and name != "act_dead_fraction")
EDGES = np.linspace(-0.2, 0.2, 17)
FAULTS = ("none", "none", "learning_rate", "none", "none", "batches", "none", "none", "not_a_number")
"""In turn; a third of the runs break."""


def write_run(root: Path, number: int, steps: int) -> str:
    """Write one recorded run and return its fault."""
    rng = np.random.default_rng(number)
    fault = FAULTS[number % len(FAULTS)]
    onset = int(steps * rng.uniform(0.4, 0.8))
    peak = 3e-3 if fault == "learning_rate" else float(rng.choice([3e-4, 6e-4]))
    meta = {"model_name": "GPT", "batch_size": int(rng.choice([16, 32])), "peak_lr": peak, "seed": number}
    config = TrainScopeConfig(run_dir=str(root), run_name=f"run_{number:04d}")
    writer = RunWriter.create(config, meta=meta)
    loss, norm, rate = signals(rng, steps, fault, onset, peak)
    level = rng.uniform(0.5, 1.5, len(NAMES))
    valid = np.arange(len(NAMES)) < len(PARAMETERS)
    for step in range(steps):
        hit = fault != "none" and onset <= step < onset + (400 if fault == "not_a_number" else 6)
        strength = norm[step] / 2.0
        writer.append(
            step, scalars(rng, step, loss[step], norm[step], rate[step]), block(rng, step, level, valid, strength)
        )
        if hit and step == onset:
            writer.mark_spike(step, 9.0)
    writer.close()
    return fault


def signals(rng, steps, fault, onset, peak):
    """Return loss, gradient norm and learning rate of one run."""
    step = np.arange(steps)
    loss = 2.0 + 3.0 * np.exp(-step / (steps / 6)) + 0.03 * rng.standard_normal(steps)
    norm = np.exp(0.1 * rng.standard_normal(steps))
    rate = peak * np.minimum(1.0, (step + 1) / 50) * (0.55 + 0.45 * np.cos(np.pi * step / steps))
    after = step - onset
    if fault == "learning_rate":
        rate[(after >= 0) & (after < 6)] *= 30
        loss += np.where(after >= 1, 2.5 * np.exp(-np.maximum(after, 0) / 40), 0)
        norm *= np.where((after >= 1) & (after < 30), 12, 1)
    elif fault == "batches":
        loss += np.where((after >= 0) & (after < 3), 3.0, 0)
        norm *= np.where((after >= 0) & (after < 3), 8, 1)
    elif fault == "not_a_number":
        norm *= np.where((after >= -2) & (after < 0), 50, 1)
        norm[after >= 0] = np.nan
        loss[after >= 1] = np.nan
    return loss, norm, rate


def scalars(rng, step, loss, norm, rate):
    """Return one row of scalars."""
    return {
        "loss": float(loss),
        "grad_norm_before_clip": float(norm),
        "grad_norm_after_clip": float(min(norm, 1.0)),
        "lr": float(rate),
        "optimizer_m_norm": 0.1 + 0.01 * rng.random(),
        "optimizer_v_norm": 0.01 + 0.001 * rng.random(),
        "update_norm": float(rate * 10),
        "weight_norm": 30.0 + 0.001 * step,
        "step_time_ms": 100.0 + rng.random(),
        "batch_index": step,
        "cpu_memory_mb": 500.0,
        "is_spike": False,
        "spike_score": 0.0,
        "micro_batches": 1,
        "wall_time": 1.7e9 + 0.1 * step,
    }


def block(rng, step, level, valid, strength):
    """Return the statistics of all layers at one step."""
    noise = np.exp(0.1 * rng.standard_normal((12, len(NAMES)))) * level
    columns = dict(zip(OF_PARAMETERS, noise, strict=True))
    columns["grad_l2_norm"] = columns["grad_l2_norm"] * strength
    columns["grad_nan_inf_ratio"] = np.full(len(NAMES), 0.0 if np.isfinite(strength) else 1.0)
    columns["weight_l2_norm"] = 5.0 * level * (1 + 1e-4 * step)
    columns |= {name: np.abs(noise[i]) for i, name in enumerate(OF_OPTIMIZER)}
    mask = dict.fromkeys(columns, valid)
    if step % 5 == 0:
        for i, name in enumerate(
            ("act_mean", "act_std", "act_min", "act_max", "act_median", "act_max_abs", "act_kurtosis")
        ):
            columns[name], mask[name] = noise[i], ~valid
    if step % 50:
        return LayerBlock(NAMES, columns, mask)
    counts = 1000 * np.exp(-(((EDGES[:-1] + EDGES[1:]) / 2 / (0.04 + 2e-5 * step)) ** 2)) + rng.random((len(NAMES), 16))
    edges = np.tile(EDGES, (len(NAMES), 1))
    edges[~valid] = np.nan
    return LayerBlock(NAMES, columns, mask, (counts, edges))


def measure(root: Path, out: Path) -> tuple[float, float]:
    """Run the command; return its CPU seconds and its largest memory in MB."""
    code = (
        "import resource, sys; from trainscope.cli.main import run; code = run(sys.argv[1:]); "
        "who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN); "
        "print(max(resource.getrusage(w).ru_maxrss for w in who), file=sys.stderr); sys.exit(code)"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", code, "report", "--runs", str(root), "--format", "json", "--out", str(out)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    if done.returncode:
        raise SystemExit(f"the report ended with {done.returncode}: {done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, int(done.stderr.split()[-1]) / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="leave the runs in this folder, and use those that are there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = options.keep or Path(scratch) / "runs"
        there = root.is_dir() and any(root.iterdir())
        if not there:
            for number in range(options.runs):
                write_run(root, number, options.steps)
        out = Path(scratch) / "report.json"
        figures = [measure(root, out) for _ in range(options.repeat)]
        survey = json.loads(out.read_text())["survey"]
    seconds, megabytes = (min(column) for column in zip(*figures, strict=True))
    broken = {f"run_{n:04d}" for n in range(options.runs) if FAULTS[n % len(FAULTS)] != "none"}
    found = {m["name"] for m in survey["members"] if m["status"] == "broken"}
    ways = ", ".join(f"{len(c['members'])} {c['title']}" for c in survey["clusters"])
    print(f"{options.runs} runs of {options.steps} steps, {len(NAMES)} layers: {survey['summary']} ({ways})")
    print(f"{seconds:.1f} s CPU (limit {LIMIT_SECONDS:g}), {megabytes:.0f} MB (limit {LIMIT_MB:g})")
    print(
        f"broken runs found: {len(found & broken)} of {len(broken)}; stable ones taken for broken: {len(found - broken)}"
    )
    return int(seconds > LIMIT_SECONDS or megabytes > LIMIT_MB or not broken <= found)


if __name__ == "__main__":
    sys.exit(main())
