"""Runs a training script plainly and under the recorder."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

if importlib.util.find_spec("torch") is None:  # which is not imported: it is the scripts that need it
    pytest.skip("torch is not installed", allow_module_level=True)

from trainscope.core.files import PRINTED
from trainscope.core.run import Run
from trainscope.readers import read_runs
from trainscope.smoke.command import Wish
from trainscope.smoke.run import Smoke, smoke

SCRIPTS = Path(__file__).parent / "scripts"
FOREVER = 10_000
"""Steps that no script reaches: the recorder does not end it."""
COLD = ("plain", "compiled", "compiled_loss", "workers", "hugging_face", "accelerated", "lightning_module")
"""Scripts that `once` starts in a process of their own: what they import, or start themselves, is part of the case."""


class Recorded(NamedTuple):
    smoke: Smoke
    runs: list[Run]
    output: str


Record = Callable[..., Recorded]
Script = Callable[..., tuple[str, ...]]


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
        return read_back(done, out)

    return call


def read_back(done: Smoke, out: Path) -> Recorded:
    """Return a recording with its runs and its output."""
    runs = [read_runs(str(path))[0] for path in done.paths]
    return Recorded(done, runs, (out / PRINTED).read_text())


@pytest.fixture
def once(record: Record, warm: Script, tmp_path: Path, shared_folder: Path) -> Record:
    """Record a command that several tests look at, the first time only, whichever process is first."""

    def call(*command: str) -> Recorded:
        folder = shared_folder / f"recorded-{hashlib.sha256(repr(command).encode()).hexdigest()[:16]}"
        if not folder.exists():
            program = Path(command[1])
            is_cold = program.parent != SCRIPTS or program.stem in COLD
            made = record(*(command if is_cold else warm(*command)))
            (tmp_path / "recorded" / "smoke.pickle").write_bytes(pickle.dumps(made.smoke))
            try:
                (tmp_path / "recorded").rename(folder)
            except OSError:  # another process was faster
                assert folder.is_dir()
        done = pickle.loads((folder / "smoke.pickle").read_bytes())
        return read_back(replace(done, paths=tuple(folder / path.name for path in done.paths)), folder)

    return call


def script(name: str, *arguments: str) -> tuple[str, ...]:
    """Return the command of one of the scripts."""
    return (sys.executable, str(SCRIPTS / f"{name}.py"), *arguments)


@pytest.fixture(scope="session")
def plain(warm: Script) -> Callable[..., str]:
    """Return what a command prints without a recorder; scripts run warm, as they are only what is compared with."""

    def call(command: tuple[str, ...], **environment: str) -> str:
        done = subprocess.run(
            warm(*command) if command[1].endswith(".py") else command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **environment},
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    return call


@pytest.fixture(scope="session")
def warm_script(warm: Script) -> Script:
    """Return the command of one of the scripts, run warm: for what the recorder sees, not how it gets there."""
    return lambda name, *arguments: warm(*script(name, *arguments))


def numbers(output: str) -> list[str]:
    """Return the lines with losses and weights, without a launcher's own chatter."""
    return [line for line in output.splitlines() if line.startswith(("loss ", "end ", "graphs "))]
