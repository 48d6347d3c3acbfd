"""Recorded runs with a file or a column that is broken: it costs no more than itself."""

import json

import pyarrow as pa
import pytest

from .recordings import make, read


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
