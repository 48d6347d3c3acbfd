"""Trees that trainscope 1.x recorded."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from .recordings import read


def write_version_1(root, sessions):
    """A tree as trainscope 1.8.1 writes it: column order and types from a real one."""
    path = root / "old"
    (path / "layers").mkdir(parents=True)
    settings = {"run_name": "old", "full_resolution_window": 500}
    meta = {"model_name": "M", "model_config": settings, "trainscope_config": settings, "start_time": "x"}
    (path / "meta.json").write_text(json.dumps(meta))
    (path / "manifest.json").write_text(json.dumps({"last_step": 9, "n_global_rows": 10, "layer_files": []}))
    step = [s for n in sessions for s in range(n)]
    loss = [100.0 + i for i in range(len(step))]
    columns = {
        "step": pa.array(step, pa.int64()),
        "loss": pa.array(loss),
        "grad_norm_before_clip": pa.array([1.5] * len(step)),
        "step_time_ms": pa.array([20.0] * len(step)),
        "batch_index": pa.array([-1] * len(step), pa.int64()),
        "is_spike": pa.array([False] * len(step)),
        "spike_score": pa.array([0.0] * len(step)),
    }
    layer = {
        "step": columns["step"],
        "grad_l2_norm": pa.array(loss),
        "act_kurtosis": pa.nulls(len(step), pa.float64()),
    }
    moe = {
        "step": pa.array(np.repeat(step, 2), pa.int64()),
        "block": pa.array(["router", "router.net"] * len(step)),
        "shares": pa.array([[0.5, 0.5]] * 2 * len(step), pa.list_(pa.float64())),
    }
    for name, data in (("global", columns), ("layers/a%2Fb.weight", layer), ("moe", moe)):
        table = pa.table(data)
        with pa.ipc.new_stream(str(path / f"{name}.arrow"), table.schema) as writer:
            writer.write_table(table, max_chunksize=5)
    return path, loss


def test_a_tree_of_version_1_is_read_with_equal_values_and_a_note(tmp_path):
    path, loss = write_version_1(tmp_path, [12])
    (run,) = read(path)
    assert run.series["train/loss"].value.tolist() == loss
    assert run.layers.layers() == ("a/b.weight",)
    assert run.layers.series("a/b.weight", "grad_l2_norm").value.tolist() == loss
    assert len(run.layers.series("a/b.weight", "act_kurtosis")) == 0
    assert run.shares.blocks() == ("router", "router.net")
    assert len(run.shares.shares("router.net")[0]) == 12
    assert run.config == {"model_name": "M"}
    assert [note.kind for note in run.notes] == ["recorded_by_1x"]


def test_the_steps_of_a_resumed_version_1_tree_go_on(tmp_path):
    path, loss = write_version_1(tmp_path, [7, 4, 3])
    (run,) = read(path)
    assert run.series["train/loss"].step.tolist() == list(range(14))
    assert run.series["train/loss"].value.tolist() == loss
    assert run.layers.series("a/b.weight", "grad_l2_norm").value.tolist() == loss
    assert run.shares.shares("router")[0].tolist() == list(range(14))
    assert [(n.kind, n.start_step) for n in run.notes[1:]] == [("resume", 7), ("resume", 11)]


PEER = os.environ.get("TRAINSCOPE_PEER_PYTHON")
PEER_SCRIPT = """
import sys, torch
from trainscope import TrainScope
from trainscope.core.config import TrainScopeConfig
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters())
for steps, resume in ((120, False), (10, True)):
    config = TrainScopeConfig(run_dir=sys.argv[1], run_name="real", resume=resume)
    scope = TrainScope(model, optimizer, config=config).attach()
    for step in range(steps):
        x = torch.randn(32, 8)
        optimizer.zero_grad()
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean() * (50 if step == 80 else 1)
        loss.backward()
        print(repr(loss.item()), repr(model[0].weight.grad.norm().item()))
        scope.step(loss.item(), batch_index=step)
        optimizer.step()
    scope.detach()
"""


@pytest.mark.slow
@pytest.mark.skipif(PEER is None, reason="TRAINSCOPE_PEER_PYTHON names no Python that has trainscope 1.8.1")
def test_a_real_tree_of_trainscope_1_8_1_is_read_with_equal_values(tmp_path):
    command = [str(PEER), "-c", PEER_SCRIPT, str(tmp_path)]
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    truth = [tuple(map(float, line.split())) for line in done.stdout.splitlines() if line[0].isdigit()]
    (run,) = read(Path(tmp_path) / "real")
    assert run.series["train/loss"].step.tolist() == list(range(130))
    assert run.series["train/loss"].value.tolist() == [loss for loss, _ in truth]
    norms = run.layers.series("0.weight", "grad_l2_norm")
    assert norms.step.tolist() == list(range(130))
    np.testing.assert_allclose(norms.value, [norm for _, norm in truth], rtol=1e-5)
