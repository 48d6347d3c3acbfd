"""What counts as memory that a script has come to hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc"),
]
SCRIPT = """
import mmap, sys
import torch
from trainscope.smoke.injected.memory import peak_mb

start = peak_mb()
with open(sys.argv[1], "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
    sum(mapped[i] for i in range(0, len(mapped), 4096))
    read = peak_mb()
kept = torch.ones(64 * 2**18)
held = peak_mb()
del kept
print(read - start, held - read, peak_mb() - held)
"""


def test_a_mapped_file_is_no_memory_of_the_script_and_a_tensor_is(tmp_path):
    data = tmp_path / "data.bin"
    data.write_bytes(bytes(96 * 2**20))
    done = subprocess.run([sys.executable, "-c", SCRIPT, data], capture_output=True, text=True, check=True)
    read, held, after = map(float, done.stdout.split())
    assert read < 8.0
    assert held == pytest.approx(64.0, abs=8.0)
    assert after == pytest.approx(0.0, abs=2.0), "a peak stays"
