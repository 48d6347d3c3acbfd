import pyarrow as pa

from store.runs import make
from trainscope.store import schema, stream
from trainscope.store.reader import RunReader

# A column that is in this list was released: it may not change its name or type within version 2.
RELEASED_SCALARS = {
    "step": "int64",
    "loss": "double",
    "grad_norm_before_clip": "double",
    "grad_norm_after_clip": "double",
    "lr": "double",
    "optimizer_v_norm": "double",
    "step_time_ms": "double",
    "batch_index": "int64",
    "is_spike": "bool",
    "cpu_memory_mb": "double",
    "cuda_memory_mb": "double",
    "spike_score": "double",
}
RELEASED_STATISTICS = [
    "grad_l2_norm",
    "weight_l2_norm",
    "act_mean",
    "act_std",
    "act_max_abs",
    "act_kurtosis",
    "grad_nan_inf_ratio",
    "grad_max_abs",
    "grad_mean",
    "weight_mean",
    "weight_std",
    "weight_max_abs",
    "weight_min",
    "act_min",
    "act_max",
    "act_median",
]


def test_released_columns_keep_name_and_type():
    found = {field.name: str(field.type) for field in schema.global_schema()}
    assert found.items() >= RELEASED_SCALARS.items()
    layer = {field.name: str(field.type) for field in schema.layer_schema("x")}
    assert all(layer[name] == "double" for name in RELEASED_STATISTICS)
    assert layer["hist_counts"] == layer["hist_edges"] == "list<item: double>"


def test_every_column_but_the_keys_is_nullable():
    keys = {"step", "layer", "block", "plugin", "metric"}
    every = (schema.global_schema(), schema.layer_schema("x"), schema.shares_schema(), schema.plugin_schema())
    for found in every:
        assert {field.name for field in found if not field.nullable} <= keys


def test_a_reader_supplies_what_an_older_file_lacks_and_ignores_what_a_newer_one_adds(tmp_path):
    make(tmp_path, range(10)).close()
    run = tmp_path / "a"
    table = stream.read(run / "global.arrow")
    older = table.select(["step", "loss"]).append_column("from_the_future", pa.array(["?"] * 10))
    stream.write_whole(run / "global.arrow", older.schema, older.to_batches())
    layer = run / "layers" / "head.bias.arrow"
    newer = stream.read(layer).select(["step", "grad_l2_norm"]).append_column("odd", pa.array([b"?"] * 10))
    newer = newer.replace_schema_metadata(None)
    stream.write_whole(layer, newer.schema, newer.to_batches())
    reader = RunReader(run)
    assert reader.scalars().column("lr").null_count == 10
    assert reader.scalars().column("loss").to_pylist()[3] == 10.0 - 3 / 1000
    assert len(reader.layer_points("head.bias", "grad_l2_norm")[0]) == 10
    assert len(reader.layer_points("head.bias", "rms_t")[0]) == 0
    assert reader.layer_table("head.bias").column("rms_t").null_count == 10
