"""Disks that fill up, vanish or refuse: one line a kind of failure, and the training goes on."""

from __future__ import annotations

import logging
import math
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tests.recorder.conftest import batch_of, columns, loss_of, make_training  # noqa: E402

pytestmark = pytest.mark.slow


def train(scope, model, optimizer, steps, *, at=None, act=None, nan_at=()):
    for step in range(steps):
        if step == at:
            act()
        optimizer.zero_grad()
        loss = loss_of(model, batch_of(step))
        loss.backward()
        scope.step(math.nan if step in nan_at else loss)
        optimizer.step()


LIMITED = """
    import resource, signal, sys
    sys.path.insert(0, {root!r})
    import torch
    from tests.recorder.conftest import make_training
    from tests.recorder.test_disks import train
    from trainscope import TrainScope, TrainScopeConfig
    model, optimizer = make_training()
    config = TrainScopeConfig(run_dir={run_dir!r}, run_name="run", checkpoint_on_spike=True)
    scope = TrainScope(model, optimizer, config).attach()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, 9_000))
    train(scope, model, optimizer, 40, nan_at=(5,))
    scope.detach()
    print(sorted(scope.faults))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_a_checkpoint_that_does_not_fit_is_one_line_that_says_so_and_leaves_no_half_file(tmp_path):
    root = str(Path(__file__).resolve().parents[2])
    script = textwrap.dedent(LIMITED).format(root=root, run_dir=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['checkpoint: StoreError', 'rng state: StoreError', 'store: StoreError']"
    lines = [line for line in done.stderr.splitlines() if "recorder fault" in line]
    assert len(lines) == 3
    assert all("cannot be written (File too large)" in line for line in lines)
    assert list((tmp_path / "run" / "checkpoints").iterdir()) == []
    assert columns(tmp_path / "run" / "global.arrow")["step"][0] == 0


@pytest.mark.parametrize("what", ["", "journal", "layers", "spikes", "global.arrow"])
def test_a_run_that_somebody_deletes_is_one_warning_and_its_name_is_free_again(scope_of, training, caplog, what):
    model, optimizer = training
    scope = scope_of(model, optimizer).attach()
    path = scope.session.path

    def delete():
        gone = path / what
        shutil.rmtree(gone) if gone.is_dir() else gone.unlink()

    with caplog.at_level(logging.WARNING, "trainscope"):
        train(scope, model, optimizer, 40, at=12, act=delete, nan_at=(25,))
        scope.detach()
    assert set(scope.faults) <= {"store: StoreError"}
    assert len(caplog.records) <= 1
    other, its_optimizer = make_training()
    torch.manual_seed(0)
    make_training()
    for step in range(40):
        its_optimizer.zero_grad()
        loss_of(other, batch_of(step)).backward()
        its_optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))
    again = scope_of(model, optimizer, resume=True).attach()
    train(again, model, optimizer, 3)
    again.detach()
    assert again.faults == {}


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs /proc")
def test_a_place_where_nothing_can_be_made_is_one_warning_and_spikes_are_told_all_the_same(scope_of, training, caplog):
    with caplog.at_level(logging.WARNING, "trainscope"):
        scope = scope_of(*training, run_dir="/proc/self/runs", checkpoint_on_spike=True).attach()
        assert scope.session.path is None
        assert scope.step(math.nan)["spike_score"] == math.inf
        scope.detach()
    assert len(caplog.records) == 1
    assert scope.faults == {"store: StoreError": 1}
