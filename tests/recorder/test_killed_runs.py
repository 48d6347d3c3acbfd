"""A killed run reads back to its last flush: a promise, shown to fail against a recorder that breaks it."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from tests.recorder.conftest import columns  # noqa: E402

from trainscope.store.writer import FLUSH_STEPS  # noqa: E402

pytestmark = pytest.mark.slow


KILLED = """
    import os, sys, signal, torch
    sys.path.insert(0, {root!r})
    from tests.recorder.conftest import batch_of, loss_of, make_training
    from trainscope import TrainScope, TrainScopeConfig
    if {broken}:
        from trainscope.store.writer import RunWriter
        RunWriter.flush = lambda self: None
    model, optimizer = make_training()
    scope = TrainScope(model, optimizer, TrainScopeConfig(run_dir={run_dir!r}, run_name="run")).attach()
    for step in range(1000):
        optimizer.zero_grad()
        loss = loss_of(model, batch_of(step))
        loss.backward()
        scope.step(loss)
        optimizer.step()
        if step == {last}:
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def killed(tmp_path, warm):
    """Return a function that trains in a process of its own until it is killed, and returns the recorded steps."""

    def call(last, *, broken=False):
        root = str(Path(__file__).resolve().parents[2])
        script = tmp_path / "killed.py"
        script.write_text(textwrap.dedent(KILLED).format(root=root, run_dir=str(tmp_path), last=last, broken=broken))
        done = subprocess.run(warm(sys.executable, str(script)), capture_output=True, text=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        path = tmp_path / "run" / "global.arrow"
        return columns(path)["step"] if path.exists() else []

    return call


@pytest.mark.parametrize("last", [47, 50, 53])
def test_a_killed_run_reads_back_to_its_last_flush(killed, last):
    steps = killed(last)
    assert steps == list(range(len(steps)))
    assert len(steps) >= last + 1 - FLUSH_STEPS - 1


def test_a_killed_run_reads_back_to_its_last_flush_fails_for_a_recorder_that_does_not_flush(killed):
    assert killed(50, broken=True) == []
