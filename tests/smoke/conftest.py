"""Runs a training script plainly and under the recorder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("torch")

from trainscope.core.files import PRINTED
from trainscope.core.run import Run
from trainscope.readers import read_runs
from trainscope.smoke.command import Wish
from trainscope.smoke.run import Smoke, smoke

SCRIPTS = Path(__file__).parent / "scripts"
FOREVER = 10_000
"""Steps that no script reaches: the recorder does not end it."""


class Recorded(NamedTuple):
    smoke: Smoke
    runs: list[Run]
    output: str


Record = Callable[..., Recorded]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Record a command and read the runs back."""

    def call(
        *command: str,
        steps: int = FOREVER,
        seed: int | None = None,
        timeout: float = 300.0,
        skip: tuple[int, ...] | None = None,
        method: str = "drop_batch",
    ) -> Recorded:
        out = tmp_path / "recorded"
        done = smoke(Wish(command, steps, seed, timeout, skip, method=method), out, lambda _done, _wanted: None)
        runs = [read_runs(str(path))[0] for path in done.paths]
        return Recorded(done, runs, (out / PRINTED).read_text())

    return call


def script(name: str, *arguments: str) -> tuple[str, ...]:
    """Return the command of one of the scripts."""
    return (sys.executable, str(SCRIPTS / f"{name}.py"), *arguments)


def plain(command: tuple[str, ...], **environment: str) -> str:
    """Return what a command prints without a recorder."""
    env = {**os.environ, **environment}
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def numbers(output: str) -> list[str]:
    """Return the lines with losses and weights, without a launcher's own chatter."""
    return [line for line in output.splitlines() if line.startswith(("loss ", "end ", "graphs "))]
