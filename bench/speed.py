"""Measure the cost of `trainscope analyze`, side by side with what it is compared to, and check the budgets.

    python bench/speed.py [--rows 1000000] [--repeat 3]

Every figure is of a whole process (imports included), the best of `repeat` runs, interleaved. Budgets:
1,000,000 JSONL rows of 4 metrics in at most 3 times pyarrow's JSON reader and 1 GB; 100,000 rows in at
most 1.5 s of CPU; `trainscope --help` at most 3 times `import click`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
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
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
