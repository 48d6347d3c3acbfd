import json

import pytest

from store.runs import NAMES, block, config, make, plain_read, record, value
from trainscope.store import spikes
from trainscope.store.reader import RunReader
from trainscope.store.windows import Windows
from trainscope.store.writer import RunWriter


def test_a_spike_window_has_real_steps_on_both_sides(tmp_path):
    writer = make(tmp_path, range(51))
    writer.mark_spike(50, 9.5)
    record(writer, range(51, 100))
    writer.close()
    window = plain_read(tmp_path / "a" / "spikes" / "spike_step_50.arrow")
    assert window.column("step").to_pylist() == list(range(45, 54))
    for j, name in enumerate(NAMES):
        layer = plain_read(tmp_path / "a" / "spikes" / "spike_step_50_layers" / f"{name}.arrow")
        assert layer.column("step").to_pylist() == list(range(45, 54))
        assert layer.column("grad_l2_norm").to_pylist() == [value(s, j) for s in range(45, 54)]
    found = json.loads((tmp_path / "a" / "manifest.json").read_text())["spikes"]
    assert found == [{"step": 50, "score": 9.5, "first": 45, "last": 53, "also": []}]


def test_a_window_has_its_steps_whatever_they_are_numbered_by(tmp_path):
    writer = make(tmp_path, range(0, 5_100, 100))
    writer.mark_spike(5_000, 9.5)
    record(writer, range(5_100, 9_000, 100))
    writer.close()
    for file in ("spike_step_5000.arrow", f"spike_step_5000_layers/{NAMES[0]}.arrow"):
        assert plain_read(tmp_path / "a" / "spikes" / file).column("step").to_pylist() == list(range(4_500, 5_400, 100))


def test_the_steps_of_an_old_spike_window_read_back_at_full_resolution(tmp_path):
    writer = make(tmp_path, range(54), full_resolution_window=20)
    writer.mark_spike(53, 9.5)
    record(writer, range(54, 400))
    writer.close()
    step, got = RunReader(writer.path).layer_points("head.bias", "grad_l2_norm")
    assert set(range(48, 57)) <= set(step.tolist())
    assert got.tolist() == [value(s, 2) for s in step.tolist()]


def test_a_window_cut_short_by_the_end_has_the_steps_there_are(tmp_path):
    writer = make(tmp_path, range(3))
    writer.mark_spike(2, float("inf"))
    writer.close()
    window = plain_read(tmp_path / "a" / "spikes" / "spike_step_2.arrow")
    assert window.column("step").to_pylist() == [0, 1, 2]
    assert json.loads((tmp_path / "a" / "manifest.json").read_text())["spikes"][0]["score"] == "inf"
    assert RunReader(writer.path).manifest.windows[0].step == 2


@pytest.mark.slow
def test_a_diverging_run_cannot_fill_the_disk_with_windows(tmp_path, monkeypatch):
    monkeypatch.setattr(spikes, "MAX_WINDOWS", 10)
    writer = RunWriter.create(config(tmp_path, spike_window_before=1, spike_window_after=1), meta={})
    for step in range(90):
        writer.append(step, {"loss": 1.0}, block(step))
        writer.mark_spike(step, 9.0)
    writer.close()
    folders = [p for p in (writer.path / "spikes").iterdir() if p.is_dir()]
    assert len(folders) == 10
    manifest = RunReader(writer.path).manifest
    assert manifest.dropped_windows > 0
    assert manifest.windows[0].step == 0
    assert manifest.windows[-1].step >= 87


def test_a_spike_right_after_a_resume_still_has_the_steps_before_it(tmp_path):
    make(tmp_path, range(40)).close()
    again = RunWriter.create(config(tmp_path, resume=True), meta={})
    record(again, range(40, 42))
    again.mark_spike(41, 9.0)
    record(again, range(42, 50))
    again.close()
    window = plain_read(again.path / "spikes" / "spike_step_41.arrow")
    layer = plain_read(again.path / "spikes" / "spike_step_41_layers" / "head.bias.arrow")
    assert window.column("step").to_pylist() == list(range(36, 45))
    assert layer.column("step").to_pylist() == list(range(36, 45))


def test_a_window_begins_so_many_steps_before_its_spike_whether_or_not_they_were_seen():
    early, sparse = Windows(10, 5), Windows(2, 5)
    early.see([{"step": 2}, {"step": 3}])
    early.mark(3, 9.0)
    sparse.see({"step": step} for step in (10, 20, 30, 40))
    sparse.mark(40, 9.0)
    assert [taken[0].first for taken in (early.take(3), sparse.take(40)) if taken] == [-7, 20]
