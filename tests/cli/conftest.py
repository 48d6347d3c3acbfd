"""Small logs with known outcomes, and the command line run in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from trainscope.cli.main import run


class Result(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """Run trainscope in an empty folder and return its exit code and what it wrote."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)

    def call(*args: str) -> Result:
        capsys.readouterr()
        code = run(args)
        captured = capsys.readouterr()
        return Result(int(code), captured.out, captured.err)

    return call


def rows(values: list[object], header: str = "step,loss") -> str:
    return "\n".join([header, *(f"{i},{value}" for i, value in enumerate(values))]) + "\n"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with one log for each outcome."""
    falling = [3 - i / 40 + 0.01 * (i % 3) for i in range(60)]
    (tmp_path / "healthy.csv").write_text(rows([*falling]))
    (tmp_path / "nan.csv").write_text(rows([*falling[:40], *["nan"] * 20]))
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)) * 8)
    (tmp_path / "empty.csv").write_text("step,loss\n")
    (tmp_path / "scores.csv").write_text(rows([i / 100 for i in range(60)], "step,accuracy"))
    return tmp_path
