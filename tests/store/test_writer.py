import json
import math
import os
import time

import numpy as np
import pytest

from store.runs import NAMES, block, check_layers, config, make, plain_read, record, value
from trainscope.store import retention, stream
from trainscope.store.block import LayerBlock
from trainscope.store.reader import RunReader
from trainscope.store.writer import FLUSH_STEPS, RunWriter


def test_a_closed_run_is_the_documented_tree_and_reads_with_plain_pyarrow(tmp_path):
    make(tmp_path, range(120)).close()
    run = tmp_path / "a"
    assert sorted(p.name for p in (run / "layers").iterdir()) == sorted(f"{n}.arrow" for n in NAMES)
    assert list((run / "journal").iterdir()) == []
    assert plain_read(run / "global.arrow").column("loss").to_pylist() == [10.0 - s / 1000 for s in range(120)]
    table = plain_read(run / "layers" / "blocks.0.mlp.weight.arrow")
    assert table.column("step").to_pylist() == list(range(120))
    assert table.column("grad_l2_norm").to_pylist() == [value(s, 1) for s in range(120)]
    assert json.loads((run / "meta.json").read_text())["model_name"] == "tiny"
    assert json.loads((run / "manifest.json").read_text())["last_step"] == 119


def test_what_was_not_sampled_is_null_and_not_zero(tmp_path):
    make(tmp_path, range(60)).close()
    embed = plain_read(tmp_path / "a" / "layers" / "embed.weight.arrow")
    mlp = plain_read(tmp_path / "a" / "layers" / "blocks.0.mlp.weight.arrow")
    assert embed.column("act_mean").to_pylist() == [float(s) if s % 5 == 0 else None for s in range(60)]
    assert mlp.column("act_mean").null_count == 60
    assert mlp.column("rms_t").null_count == 60
    assert embed.column("hist_counts").to_pylist()[50] == [50.0] * 4
    assert embed.column("hist_edges").to_pylist()[50] == [-1, -0.5, 0, 0.5, 1]
    assert embed.column("hist_counts").null_count == 58
    head = plain_read(tmp_path / "a" / "layers" / "head.bias.arrow")
    assert head.column("hist_counts").null_count == 60


def test_nan_and_infinity_are_data_and_not_null(tmp_path):
    writer = RunWriter.create(config(tmp_path), meta={})
    bad = np.array([np.nan, np.inf, -np.inf])
    writer.append(0, {"loss": float("nan")}, LayerBlock(NAMES, {"grad_l2_norm": bad}))
    writer.append(1, {"loss": None}, LayerBlock(NAMES, {"grad_l2_norm": bad}))
    writer.close()
    reader = RunReader(writer.path)
    loss = reader.scalars().column("loss")
    assert [v if v is None else str(v) for v in loss.to_pylist()] == ["nan", None]
    assert [str(reader.layer_points(n, "grad_l2_norm")[1][0]) for n in NAMES] == ["nan", "inf", "-inf"]


def test_an_unclosed_run_loses_at_most_one_flush_interval(tmp_path):
    writer = make(tmp_path, range(38))
    reader = RunReader(writer.path)
    seen = len(reader.scalars())
    assert 38 - seen < FLUSH_STEPS
    check_layers(reader, range(seen))
    for segment in (writer.path / "journal").iterdir():
        table = plain_read(segment)
        assert set(table.column("layer").unique().to_pylist()) == set(NAMES)
    writer.flush()
    assert len(RunReader(writer.path).scalars()) == 38


def test_slow_steps_are_flushed_by_the_clock(tmp_path, monkeypatch):
    writer = make(tmp_path, range(1))
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 60)
    record(writer, [1])
    assert len(RunReader(writer.path).scalars()) == 2


@pytest.mark.parametrize("cut", [1, 7, 100, 900])
def test_a_torn_tail_costs_no_more_than_the_torn_flush(tmp_path, cut):
    writer = make(tmp_path, range(40))
    for path in (writer.path / "global.arrow", *(writer.path / "journal").iterdir()):
        os.truncate(path, path.stat().st_size - cut)
    reader = RunReader(writer.path)
    assert len(reader.scalars()) == 30
    assert reader.is_torn
    check_layers(reader, range(30))


def test_old_steps_are_thinned_and_new_ones_kept_whole(tmp_path):
    make(tmp_path, range(1000), full_resolution_window=100).close()
    reader = RunReader(tmp_path / "a")
    step, _ = reader.layer_points("embed.weight", "grad_l2_norm")
    assert step[step >= 900].tolist() == list(range(900, 1000))
    assert step[step < 900].tolist() == list(range(0, 900, 10))
    assert len(reader.scalars()) == 1000  # scalars are small: kept whole far longer


@pytest.mark.parametrize(("start", "stride"), [(1, 1), (3, 7), (0, 3)])
def test_thinning_keeps_activations_and_histograms_whatever_the_phase(tmp_path, start, stride):
    writer = RunWriter.create(config(tmp_path, full_resolution_window=50), meta={})
    for n, step in enumerate(range(start, start + 600 * stride, stride)):
        columns = {"grad_l2_norm": np.ones(3)}
        if n % 5 == 0:
            columns["act_mean"] = np.ones(3)
        writer.append(step, {"loss": 1.0}, LayerBlock(NAMES, columns))
    writer.close()
    step, _ = RunReader(writer.path).layer_points("embed.weight", "act_mean")
    old = step[step <= step[-1] - 50]
    assert len(old) >= 600 * stride / max(10, 5 * stride) - 10


@pytest.mark.slow
def test_disk_stays_bounded_and_every_stretch_of_a_long_run_is_represented(tmp_path, monkeypatch):
    monkeypatch.setattr(retention, "MAX_OLD_STEPS", 100)
    monkeypatch.setattr(retention, "SCALAR_WINDOW", 200)
    # A slow or busy machine gets less thinning done in the time that a flush allows it: here it gets all the time.
    monkeypatch.setattr("trainscope.store.writer.WORK_SECONDS", math.inf)
    sizes = []
    writer = RunWriter.create(config(tmp_path, full_resolution_window=50), meta={})
    for part in range(8):
        for step in range(part * 2000, (part + 1) * 2000):
            shares = {"router": np.array([0.25, 0.75])}
            spike = step == 1234
            scalars = {"loss": 1.0, "is_spike": spike}
            writer.append(step, scalars, block(step), shares, [("p", "m", float(step))])
        sizes.append(sum(p.stat().st_size for p in writer.path.rglob("*") if p.is_file()))
    writer.close()
    assert max(sizes[4:]) <= 1.1 * max(sizes[:4])  # a saw: it grows until the stretches double
    reader = RunReader(writer.path)
    step, _ = reader.layer_points("embed.weight", "grad_l2_norm")
    assert step[0] == 0
    assert np.diff(step).max() <= 640
    assert step[-50:].tolist() == list(range(15950, 16000))
    scalars = reader.scalars()
    assert len(scalars) < 2 * 200 + 2 * 100 + 10
    assert 1234 in scalars.column("step").to_pylist()  # a spike outlives its neighbours
    assert len(reader.shares("router")[0]) < 400
    assert len(reader.plugin_metrics()[("p", "m")][0]) < 400


def test_unknown_scalars_and_statistics_become_columns_whenever_they_appear(tmp_path):
    writer = make(tmp_path, range(300), full_resolution_window=50)
    for step in range(300, 600):
        found = {"grad_l2_norm": np.ones(3), "sharpness": np.full(3, float(step))}
        writer.append(step, {"loss": 1.0, "lr/group_1": 0.5}, LayerBlock(NAMES, found))
    writer.close()
    reader = RunReader(writer.path)
    assert reader.scalars().column("lr/group_1").to_pylist() == [None] * 300 + [0.5] * 300
    step, got = reader.layer_points("head.bias", "sharpness")
    assert step.tolist() == got.tolist()
    assert step[0] == 300
    assert len(step) > 50


def test_layers_may_change_while_the_run_goes_on(tmp_path):
    writer = make(tmp_path, range(15))
    record(writer, range(15, 40), names=("embed.weight", "new.adapter"))
    writer.close()
    reader = RunReader(writer.path)
    assert reader.layers() == (*NAMES, "new.adapter")
    assert reader.layer_points("embed.weight", "grad_l2_norm")[0].tolist() == list(range(40))
    assert reader.layer_points("head.bias", "grad_l2_norm")[0].tolist() == list(range(15))
    assert reader.layer_points("new.adapter", "grad_l2_norm")[0].tolist() == list(range(15, 40))


def test_closing_twice_is_closing_once(tmp_path):
    writer = make(tmp_path, range(5))
    writer.close()
    before = {p: p.read_bytes() for p in writer.path.rglob("*") if p.is_file()}
    writer.close()
    assert {p: p.read_bytes() for p in writer.path.rglob("*") if p.is_file()} == before


def test_the_files_that_a_plain_reader_sees_are_never_half_a_rewrite(tmp_path):
    make(tmp_path, range(700), full_resolution_window=50).close()
    assert list(tmp_path.rglob("*.part")) == []
    for path in tmp_path.rglob("*.arrow"):
        assert not stream.is_torn(path), path


def test_a_layer_named_twice_is_refused(tmp_path):
    writer = RunWriter.create(config(tmp_path), meta={})
    with pytest.raises(ValueError, match="'a' is named twice"):
        writer.append(0, {}, LayerBlock(("a", "b", "a"), {"grad_l2_norm": np.zeros(3)}))


def test_arrays_are_copied_and_shapes_checked(tmp_path):
    writer = RunWriter.create(config(tmp_path), meta={})
    found = np.zeros(3)
    for step in range(3):
        found[:] = step
        writer.append(step, {}, LayerBlock(NAMES, {"grad_l2_norm": found}))
    writer.close()
    assert RunReader(writer.path).layer_points("head.bias", "grad_l2_norm")[1].tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="'grad_l2_norm': 3 layers but shape"):
        LayerBlock(NAMES, {"grad_l2_norm": np.zeros(2)})
    with pytest.raises(ValueError, match="histograms: 3 layers"):
        LayerBlock(NAMES, {}, None, (np.zeros((3, 4)), np.zeros((3, 4))))


def test_a_closed_run_knows_which_statistics_it_has(tmp_path):
    writer = make(tmp_path, range(60))
    assert "attn_entropy" in RunReader(writer.path).layer_metrics()  # still written: it may come
    writer.close()
    assert RunReader(writer.path).layer_metrics() == ("grad_l2_norm", "weight_std", "act_mean")


def test_a_resumed_run_knows_the_statistics_of_both_sessions(tmp_path):
    make(tmp_path, range(4)).close()
    writer = RunWriter.create(config(tmp_path, resume=True), meta={})
    writer.append(4, {"loss": 1.0}, LayerBlock(NAMES, {"rms_t": np.ones(len(NAMES)), "own": np.ones(len(NAMES))}))
    writer.close()
    assert RunReader(writer.path).layer_metrics() == ("grad_l2_norm", "weight_std", "rms_t", "act_mean", "own")


def test_a_run_resumed_after_a_kill_promises_nothing(tmp_path):
    first = make(tmp_path, range(4))
    first.flush()
    first._lock.release()
    writer = RunWriter.create(config(tmp_path, resume=True), meta={})
    writer.close()
    assert "attn_entropy" in RunReader(writer.path).layer_metrics()
