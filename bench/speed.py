"""Measure the cost of `trainscope analyze`, side by side with what it is compared to, and check the budgets.

    python bench/speed.py [--rows 1000000] [--text-mb 64] [--repeat 3]

Every figure is of a whole process (imports included), the best of `repeat` runs, interleaved. Budgets:
1,000,000 JSONL rows of 4 metrics in at most 3 times pyarrow's JSON reader and 1 GB; 100,000 rows in at
most 1.5 s of CPU; `trainscope --help` at most 3 times `import click`.

Free text is measured as MB per second of CPU that the reader needs for logs of several trainers, the start of Python
taken off, beside a loop with one expression that knows the trainer and takes two numbers a line, where the reader
takes all of them. Budget: 50 MB/s, on a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

CLI = str(Path(sys.executable).with_name("trainscope"))


@dataclass(frozen=True, slots=True)
class Cost:
    """What one process took."""

    wall: float
    cpu: float
    peak_mb: float


def run(*command: str) -> Cost:
    """Run a command with its output thrown away and return its cost."""
    begin = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.execvp(command[0], command)
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: exit {code}")
    return Cost(time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def best(repeat: int, *commands: tuple[str, ...]) -> list[Cost]:
    """Run the commands in turn, `repeat` times, and keep the cheapest of each."""
    costs = [[run(*c) for c in commands] for _ in range(repeat)]
    return [min((row[i] for row in costs), key=lambda c: c.cpu) for i in range(len(commands))]


def write_log(path: Path, rows: int) -> None:
    """Write a JSON-lines log of `rows` steps and an evaluation every 500."""
    rng = np.random.default_rng(7)
    t = np.arange(1, rows + 1)
    level = 1.9 + 1.6 * (1 + t / (rows / 50)) ** -0.6 + 6.5 * np.exp(-t / (rows / 80))
    loss = level * (1 + 0.015 * rng.normal(size=rows))
    rate = 3e-4 * np.minimum(1, t / (rows / 20)) * (0.55 + 0.45 * np.cos(np.pi * t / rows))
    norm = 0.35 * np.exp(0.18 * rng.normal(size=rows))
    with path.open("w") as out:
        for i in range(rows):
            lead = f'{{"step": {i + 1}, "loss": {loss[i]:.6f}, "learning_rate": {rate[i]:.6g}'
            out.write(f'{lead}, "grad_norm": {norm[i]:.5f}}}\n')
            if (i + 1) % 500 == 0:
                out.write(f'{{"step": {i + 1}, "eval_loss": {level[i] + 0.06:.6f}}}\n')


def _figures(name: str, lines: int) -> Iterator[dict[str, str]]:
    """Yield the numbers of each line as they are printed."""
    rng = np.random.default_rng(len(name))
    loss, rate, norm = rng.uniform(2, 3, lines), rng.uniform(0, 1e-4, lines), rng.uniform(0.5, 2, lines)
    for i in range(lines):
        clock = f"{i // 3600 % 24:02d}:{i // 60 % 60:02d}:{i % 60:02d}"
        yield {
            "step": f"{i + 1}",
            "loss": f"{loss[i]:.4f}",
            "sci": f"{loss[i]:.6E}",
            "rate": f"{rate[i]:.6E}",
            "norm": f"{norm[i]:.3f}",
            "long": repr(float(norm[i])),
            "clock": clock,
            "time": f"{100 * norm[i]:.2f}",
            "tokens": f"{7000 + i % 1000:,}",
        }


TEXTS = {
    "Megatron": (
        " [2024-05-01 {clock}] iteration {step:>8}/ 5000000 | consumed samples: {step:>12} | elapsed time per "
        "iteration (ms): {time} | learning rate: {rate} | global batch size:    16 | lm loss: {sci} | loss scale: 1.0 "
        "| grad norm: {norm} | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
        r"iteration +(\d+)/.*lm loss: (\S+)",
    ),
    "nanoGPT": ("iter {step}: loss {loss}, time {time}ms, mfu {norm}%\n", r"iter (\d+): loss ([\d.]+)"),
    "Hugging Face": (
        "{{'loss': {loss}, 'grad_norm': {long}, 'learning_rate': {rate}, 'epoch': {norm}}}\n",
        r"'loss': ([\d.]+).*'epoch': ([\d.]+)",
    ),
    "torchtitan": (
        "[rank0]:2025-02-03 {clock},123 - root - INFO - \x1b[31mstep: {step}  \x1b[32mloss: {loss}  \x1b[38;2;180;60;0m"
        "grad_norm:  {norm}  \x1b[33mmemory: 28.73GiB(91.62%)  \x1b[34mtps: {tokens}  \x1b[35mmfu: 17.26%\x1b[39m\n",
        r"step: +(\d+) .*loss: +([\d.]+)",
    ),
    "progress bar": (
        "\rEpoch 1:  40%|####      | {step}/9000000 [{clock}<10:00:00,  {norm}it/s, loss={loss}]",
        r"\| (\d+)/.*?loss=([\d.]+)",
    ),
}
"""A line of each trainer, and the expression that takes its step and loss."""

BY_HAND = (
    "import re, sys\n"
    "find = re.compile(sys.argv[2]).search\n"
    "points = []\n"
    "for line in open(sys.argv[1], newline=None):\n"
    "    found = find(line)\n"
    "    if found:\n"
    "        points.append((float(found[1]), float(found[2])))\n"
)
OURS = "import sys; from trainscope.readers import read_runs; read_runs(sys.argv[1])"


def write_text(path: Path, name: str, size: float) -> int:
    """Write a log of about `size` MB and return its bytes."""
    line = TEXTS[name][0]
    lines = max(100, int(size * 1e6 / len(line.format(**next(_figures(name, 1))))))
    with path.open("w", newline="") as out:
        out.writelines(line.format(**numbers) for numbers in _figures(name, lines))
    return path.stat().st_size


def text_speed(folder: Path, size: float, repeat: int) -> Iterator[tuple[str, float, float, float]]:
    """Yield for each trainer: MB/s of CPU, the share of the CPU of a loop by hand, bytes of memory a byte of text."""
    small, large = folder / "small.log", folder / "large.log"
    for name, (_, pattern) in TEXTS.items():
        write_text(small, name, 0.02)
        written = write_text(large, name, size)
        none, ours, loop = best(
            repeat,
            (sys.executable, "-c", OURS, str(small)),
            (sys.executable, "-c", OURS, str(large)),
            (sys.executable, "-c", BY_HAND, str(large), pattern),
        )
        cpu, memory = ours.cpu - none.cpu, (ours.peak_mb - none.peak_mb) * 2**20
        yield name, written / 1e6 / cpu, cpu / loop.cpu, memory / written


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--text-mb", type=float, default=64.0)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    missed = 0

    def check(what: str, figure: float, limit: float, unit: str) -> None:
        nonlocal missed
        missed += figure > limit
        print(
            f"{what:56s} {figure:8.2f} {unit:5s} (at most {limit:g}) {'ok' if figure <= limit else 'MISSED'}",
            flush=True,
        )

    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder, "large.jsonl"), Path(folder, "small.jsonl")
        write_log(large, options.rows)
        write_log(small, 100_000)
        parse = "import sys, pyarrow.json; pyarrow.json.read_json(sys.argv[1])"
        base, ours = best(
            options.repeat,
            (sys.executable, "-c", parse, str(large)),
            (CLI, "analyze", "--output", "json", str(large)),
        )
        print(f"pyarrow JSON reader, {options.rows:,} rows: {base.cpu:.2f} s CPU, {base.wall:.2f} s wall")
        print(f"trainscope analyze,  {options.rows:,} rows: {ours.cpu:.2f} s CPU, {ours.wall:.2f} s wall")
        check(f"{options.rows:,} rows: CPU over pyarrow's", ours.cpu / base.cpu, 3.0, "x")
        check(f"{options.rows:,} rows: wall over pyarrow's", ours.wall / base.wall, 3.0, "x")
        check(f"{options.rows:,} rows: peak memory", ours.peak_mb, 1000.0, "MB")
        (hundred,) = best(options.repeat, (CLI, "analyze", "--output", "json", str(small)))
        check("100,000 rows: CPU", hundred.cpu, 1.5, "s")
        click, helped = best(5 * options.repeat, (sys.executable, "-c", "import click"), (CLI, "--help"))
        check("trainscope --help: CPU over `import click`", helped.cpu / click.cpu, 3.0, "x")
        for name, speed, share, memory in text_speed(Path(folder), options.text_mb, options.repeat):
            print(
                f"{name} text: {speed:.0f} MB/s, {share:.1f} times a loop by hand, memory {memory:.1f} times the text"
            )
            check(f"{name} text: CPU for 50 MB", 50 / speed, 1.0, "s")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
