"""Ten thousand parameters, with no more open files than a shell gives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, resource, sys
from pathlib import Path
import numpy as np
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
from store.runs import block, config
from trainscope.store.reader import RunReader
from trainscope.store.writer import RunWriter
names = tuple(f"model.layers.{i}.self_attn.q_proj.weight" for i in range(10_000))
fields = dict(full_resolution_window=20, spike_window_before=2, spike_window_after=1)
writer = RunWriter.create(config(Path(sys.argv[1]), **fields), meta={})
most = 0
for step in range(50):
    writer.append(step, {"loss": 1.0}, block(step, names))
    if step == 30:
        writer.mark_spike(step, 9.0)
    most = max(most, len(os.listdir("/proc/self/fd")))
writer.close()
reader = RunReader(writer.path)
assert reader.layers() == names
for j in (0, 4_999, 9_999):
    step, got = reader.layer_points(names[j], "grad_l2_norm")
    assert got.tolist() == [s + j / 100 for s in step.tolist()]
    assert step.tolist()[-20:] == list(range(30, 50))
print(most, len(list((writer.path / "layers").iterdir())))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_ten_thousand_parameters_fit_in_1024_open_files(tmp_path):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    most_open, files = map(int, done.stdout.split())
    assert files == 10_000
    assert most_open < 30
