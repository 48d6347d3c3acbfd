"""The demo of the recorder does what its first lines say, in the time it may take."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "examples" / "gpt2_spike_demo.py"
BAD_STEP, DRIFT_FROM = 120, 150


def test_the_demo_tells_its_bad_batch_at_once_and_its_drift_before_the_end(tmp_path):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, str(SCRIPT), "--run-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    told = [int(step) for step in re.findall(r"spike at step (\d+),", done.stdout)]
    assert told[0] == BAD_STEP
    assert any(step > DRIFT_FROM for step in told[1:])
    assert len(told) <= 4
    assert (tmp_path / "gpt2_spike_demo" / "checkpoints" / f"{BAD_STEP}.pt").is_file()
    assert after.ru_utime - before.ru_utime < 60
