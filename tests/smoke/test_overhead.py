"""A smoke run costs little more than the script: CPU time, because wall time on a shared machine says nothing."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import SCRIPTS

pytestmark = pytest.mark.slow
SHARE, SECONDS = 1.15, 3.0
"""At most this multiple of the script's own time, and this many seconds for start-up and conversion."""


def cpu_seconds(*command: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_two_hundred_steps_of_a_small_gpt(tmp_path: Path):
    script = (sys.executable, str(SCRIPTS / "gpt.py"), "200")
    smoke = (sys.executable, "-m", "trainscope", "smoke", "--steps", "200", "--out", str(tmp_path), "--", *script)
    pairs = [(cpu_seconds(*script), cpu_seconds(*smoke)) for _ in range(2)]  # interleaved
    plain, recorded = min(p for p, _ in pairs), min(r for _, r in pairs)
    print(f"plain {plain:.1f} s, recorded {recorded:.1f} s of CPU time")  # noqa: T201
    assert recorded <= SHARE * plain + SECONDS
