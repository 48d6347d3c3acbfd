"""kill -9 at any instant: every run reads back, at most one flush interval is lost."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from store.runs import NAMES, value
from trainscope.store import layout
from trainscope.store.reader import RunReader
from trainscope.store.writer import FLUSH_STEPS

KILLS = int(os.environ.get("TRAINSCOPE_TEST_KILLS", "8"))

WRITER = """
import sys
from pathlib import Path
from store.runs import block, config
from trainscope.store.writer import RunWriter
writer = RunWriter.create(config(Path(sys.argv[1]), full_resolution_window=60, resume=True), meta={})
progress = open(sys.argv[2], "w")
for step in range(writer.next_step, 10**9):
    writer.append(step, {"loss": float(step), "is_spike": step % 97 == 0}, block(step))
    if step % 97 == 0:
        writer.mark_spike(step, 9.0)
    progress.seek(0)
    progress.write(f"{step}\\n")
    progress.flush()
"""


def start(root, progress):
    tests = Path(__file__).parents[1]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tests), *sys.path])}
    command = [sys.executable, "-c", WRITER, str(root), str(progress)]
    return subprocess.Popen(command, env=env, stderr=subprocess.PIPE)


def last_appended(progress):
    lines = progress.read_text().splitlines() if progress.exists() else []
    return int(lines[0]) if lines and lines[0] else None


@pytest.mark.slow
def test_a_run_killed_at_any_instant_reads_back_to_its_last_flush_and_can_be_resumed(tmp_path):
    rng = random.Random(0)
    progress = tmp_path / "progress"
    root = tmp_path / "runs"
    lost = {name: set() for name in NAMES}
    for kill in range(KILLS):
        progress.unlink(missing_ok=True)
        process = start(root, progress)
        deadline = time.monotonic() + 60
        while last_appended(progress) is None:
            assert process.poll() is None, process.stderr.read().decode()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stderr.close()
        appended = last_appended(progress)
        reader = RunReader(root / "a")
        step = reader.scalars().column("step").to_pylist()
        assert step == list(range(step[-1] + 1)), f"kill {kill}"
        assert appended - step[-1] <= FLUSH_STEPS, f"kill {kill}"
        for j, name in enumerate(NAMES):
            at, got = reader.layer_points(name, "grad_l2_norm")
            assert appended - at[-1] <= FLUSH_STEPS, f"kill {kill}"
            whole = set(range(max(0, int(at[-1]) - 50), int(at[-1]) + 1))
            assert whole <= set(at.tolist()) | lost[name], f"kill {kill}"
            # A kill between the two appends of one flush: that flush is lost here and not there.
            lost[name] |= set(range(int(at[-1]) + 1, step[-1] + 1))
            assert got.tolist() == [value(s, j) for s in at.tolist()]
        read_plainly(root / "a")


def read_plainly(run):
    """Every file yields its whole batches to plain Arrow; only the torn end of one may raise."""
    for path in [run / layout.GLOBAL, *run.rglob("layers/*.arrow"), *run.rglob("journal/*.arrow")]:
        with pa.OSFile(str(path)) as source:
            try:
                for batch in pa.ipc.open_stream(source):
                    assert batch.num_rows
            except pa.ArrowInvalid:
                assert source.tell() <= source.size()
