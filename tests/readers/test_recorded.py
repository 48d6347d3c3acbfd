import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from trainscope.core.config import TrainScopeConfig
from trainscope.core.errors import NoDataError, ReadError
from trainscope.core.run import LayerTable, ShareTable
from trainscope.readers import recorded
from trainscope.readers.source import open_source
from trainscope.store.block import LayerBlock
from trainscope.store.writer import RunWriter

NAMES = ("embed.weight", "head.bias")


def make(root, name, steps, *, close=True, **fields):
    config = TrainScopeConfig(run_dir=str(root), run_name=name, **fields)
    meta = {"model_name": "tiny", "hyperparameters": {"lr": 0.1, "adam": {"beta": 0.9}}, "n": float("nan")}
    writer = RunWriter.create(config, meta=meta)
    for step in steps:
        scalars = {
            "loss": 5.0 - step / 100,
            "grad_norm_before_clip": 2.0,
            "lr": 1e-3,
            "step_time_ms": 250.0,
            "batch_index": step if step else -1,
            "is_spike": step == 7,
            "spike_score": 9.0 if step == 7 else 0.0,
            "wall_time": 1e9 + step,
            "lr/group_1": 1e-4,
        }
        layers = LayerBlock(NAMES, {"grad_l2_norm": np.array([step, step + 0.5])})
        writer.append(step, scalars, layers, {"router": np.array([0.25, 0.75])}, [("mine", "x", float(step))])
    if close:
        writer.close()
    else:
        writer.flush()
    return writer.path


def read(path):
    source = open_source(path)
    assert recorded.sniff(source.head)
    return recorded.read_runs(source)


def test_a_run_directory_is_a_log_like_any_other(tmp_path):
    path = make(tmp_path, "a", range(20))
    (run,) = read(path)
    assert (run.name, run.source, run.format) == ("a", str(path), "recorded")
    assert run.series["train/loss"].value.tolist() == [5.0 - s / 100 for s in range(20)]
    assert run.series["train/loss"].time.tolist() == [1e9 + s for s in range(20)]
    assert run.series["train/grad_norm"].value.tolist() == [2.0] * 20
    assert run.series["learning_rate"].value.tolist() == [1e-3] * 20
    assert run.series["train/step_time"].value.tolist() == [0.25] * 20
    assert run.series["lr/group_1"].value.tolist() == [1e-4] * 20
    assert run.series["batch_index"].step.tolist() == list(range(1, 20))
    assert run.series["recorder/spike_score"].step.tolist() == [7]
    assert run.series["mine/x"].value.tolist() == list(range(20))
    assert "optimizer/v_norm" not in run.series
    assert run.config == {
        "model_name": "tiny",
        "hyperparameters.lr": 0.1,
        "hyperparameters.adam.beta": 0.9,
        "n": "nan",
    }
    assert run.notes == ()


def test_layers_and_shares_satisfy_the_protocols(tmp_path):
    (run,) = read(make(tmp_path, "a", range(20)))
    layers: LayerTable = run.layers
    shares: ShareTable = run.shares
    assert layers.layers() == NAMES
    assert "grad_l2_norm" in layers.metrics()
    assert not {"step", "layer", "hist_counts"} & set(layers.metrics())
    series = layers.series("head.bias", "grad_l2_norm")
    assert series.step.tolist() == list(range(20))
    assert series.value.tolist() == [s + 0.5 for s in range(20)]
    assert len(layers.series("head.bias", "rms_t")) == 0
    assert len(layers.series("no.such", "grad_l2_norm")) == 0
    assert shares.blocks() == ("router",)
    step, found = shares.shares("router")
    assert step.tolist() == list(range(20))
    assert found.tolist() == [[0.25, 0.75]] * 20


def test_a_killed_run_is_read_to_its_last_flush_with_a_note(tmp_path):
    path = make(tmp_path, "a", range(20), close=False)
    os.truncate(path / "global.arrow", (path / "global.arrow").stat().st_size - 3)
    (run,) = read(path)
    assert run.last_step == 19  # the per-layer journal and plug-ins still have it
    assert len(run.series["train/loss"]) == 10
    assert run.layers.series("head.bias", "grad_l2_norm").step.tolist() == list(range(20))
    (note,) = run.notes
    assert note.kind == "not_closed"
    assert "cut short" in note.message


def test_a_root_gives_every_run_and_a_file_inside_gives_its_run(tmp_path):
    for name in ("b", "a"):
        make(tmp_path / "root", name, range(5))
    make(tmp_path / "root" / "sweep", "c", range(5), rank=1)
    runs = read(tmp_path / "root")
    assert [run.name for run in runs] == ["a", "b", "c_rank1"]
    assert runs[2].source == str(tmp_path / "root" / "sweep" / "c_rank1")
    (run,) = read(tmp_path / "root" / "a" / "global.arrow")
    assert run.name == "a"


def test_thinned_statistics_are_noted(tmp_path):
    (run,) = read(make(tmp_path, "a", range(200), full_resolution_window=60))
    assert len(run.series["train/loss"]) == 200
    assert len(run.layers.series("head.bias", "grad_l2_norm")) == 60 + 14
    assert [(note.kind, note.end_step) for note in run.notes] == [("thinned", 139)]


def test_a_rewind_is_noted(tmp_path):
    make(tmp_path, "a", range(30))
    (run,) = read(make(tmp_path, "a", range(20, 25), resume=True))
    assert run.last_step == 24
    (note,) = run.notes
    assert (note.kind, note.start_step, note.end_step, note.count) == ("rewind", 20, 29, 10)


def test_a_run_without_a_step_and_a_folder_without_a_run_say_so(tmp_path):
    make(tmp_path / "root", "a", ())
    with pytest.raises(NoDataError, match="not one step was written"):
        read(tmp_path / "root")
    (tmp_path / "empty").mkdir()
    source = open_source(tmp_path / "empty")
    assert not recorded.sniff(source.head)
    with pytest.raises(ReadError, match="no recorded run"):
        recorded.read_runs(source)


@pytest.mark.parametrize("name", ["meta.json", "manifest.json", "global.arrow", "moe.arrow"])
@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"layers": 3, "spikes": [{}]}', b"\0" * 100])
def test_a_broken_file_costs_no_more_than_itself(tmp_path, name, content):
    path = make(tmp_path, "a", range(20))
    (path / name).write_bytes(content)
    if name == "global.arrow":
        with_layers = read(path)[0]
        assert "train/loss" not in with_layers.series
    else:
        (run,) = read(path)
        assert len(run.series["train/loss"]) == 20
    assert len(read(path)[0].layers.series("embed.weight", "grad_l2_norm")) == 20


@pytest.mark.parametrize(
    ("column", "content"),
    [
        ("loss", pa.array(["a"] * 20)),
        ("loss", pa.array([[1.0]] * 20)),
        ("is_spike", pa.array(["a"] * 20)),
        ("note_of_a_later_version", pa.array(["hello"] * 20)),
        ("list_of_a_later_version", pa.array([[1]] * 20)),
    ],
    ids=["words", "lists", "words for switches", "an unknown text", "an unknown list"],
)
def test_a_column_of_another_type_costs_no_more_than_itself(tmp_path, column, content):
    path = make(tmp_path, "a", range(20))
    rewrite(path / "global.arrow", column, content)
    (run,) = read(path)
    assert ("train/loss" in run.series) == (column != "loss")
    assert len(run.series["learning_rate"]) == 20
    assert column not in run.series


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        (pa.array(["x"] * 20), 0),
        (pa.array([0.5] * 20), 0),
        (pa.array([None] * 10 + list(range(10)), pa.int64()), 10),
        (pa.array([-i for i in range(20)]), 1),
        (pa.array([2**62 + i for i in range(20)]), 0),
        (pa.array(list(range(20)), pa.int32()), 20),
    ],
    ids=["words", "fractions", "none", "below 0", "beyond a float", "narrow"],
)
def test_only_rows_with_a_step_are_read(tmp_path, steps, left):
    path = make(tmp_path, "a", range(20))
    rewrite(path / "global.arrow", "step", steps)
    series = read(path)[0].series
    assert (len(series["train/loss"]) if left else "train/loss" in series) == left


def test_settings_that_are_no_table_cost_no_more_than_themselves(tmp_path):
    path = make(tmp_path, "a", range(20))
    (path / "meta.json").write_text('{"trainscope_config": 5, "schema_version": "2.0"}')
    assert len(read(path)[0].series["train/loss"]) == 20


def rewrite(path, column, content):
    """Give a table another column of that name."""
    table = pa.ipc.open_stream(path.read_bytes()).read_all()
    at = table.schema.get_field_index(column)
    table = table.append_column(column, content) if at < 0 else table.set_column(at, column, content)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


def test_a_manifest_cannot_point_outside_the_run(tmp_path):
    path = make(tmp_path, "a", range(5))
    secret = make(tmp_path, "b", range(5)) / "layers" / "head.bias.arrow"
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["layers"].append({"name": "stolen", "file": f"../../b/layers/{secret.name}"})
    (path / "manifest.json").write_text(json.dumps(manifest))
    assert "stolen" not in read(path)[0].layers.layers()


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
