import json
import multiprocessing
import os
import resource
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from store.runs import NAMES, block, config, make, record, value
from trainscope.core.errors import ConfigError, StoreError
from trainscope.store import retention, spikes, stream
from trainscope.store.block import LayerBlock
from trainscope.store.reader import RunReader
from trainscope.store.writer import FLUSH_STEPS, RunWriter


def plain_read(path):
    """What anyone gets without trainscope."""
    with pa.OSFile(str(path)) as source:
        return pa.ipc.open_stream(source).read_all()


def check_layers(reader, steps):
    for j, name in enumerate(reader.layers()):
        at, got = reader.layer_points(name, "grad_l2_norm")
        assert at.tolist() == list(steps), name
        assert got.tolist() == [value(s, j) for s in steps]


def test_a_closed_run_is_the_documented_tree_and_reads_with_plain_pyarrow(tmp_path):
    make(tmp_path, range(120)).close()
    run = tmp_path / "a"
    assert sorted(p.name for p in (run / "layers").iterdir()) == sorted(f"{n}.arrow" for n in NAMES)
    assert list((run / "journal").iterdir()) == []
    assert plain_read(run / "global.arrow").column("loss").to_pylist() == [
        10.0 - s / 1000 for s in range(120)
    ]
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


def test_two_runs_of_one_name_get_two_folders(tmp_path):
    paths = []
    for _ in range(3):
        writer = make(tmp_path, range(5))
        writer.close()
        paths.append(writer.path.name)
    assert paths == ["a", "a-2", "a-3"]
    assert len(RunReader(tmp_path / "a").scalars()) == 5


def _claim(root, barrier, found):
    barrier.wait()
    found.put(RunWriter.create(config(Path(root)), meta={}).path.name)


@pytest.mark.slow
def test_processes_that_start_together_get_a_folder_each(tmp_path):
    spawn = multiprocessing.get_context("fork")
    barrier, found = spawn.Barrier(4), spawn.Queue()
    racers = [spawn.Process(target=_claim, args=(str(tmp_path), barrier, found)) for _ in range(4)]
    for racer in racers:
        racer.start()
    names = {found.get(timeout=60) for _ in racers}
    for racer in racers:
        racer.join()
    assert names == {"a", "a-2", "a-3", "a-4"}


def test_ranks_get_a_folder_each(tmp_path):
    assert RunWriter.create(config(tmp_path), meta={}, rank=3).path.name == "a_rank3"
    assert RunWriter.create(config(tmp_path, rank=1), meta={}).path.name == "a_rank1"


@pytest.mark.parametrize("closed", [True, False])
def test_resume_goes_on_with_the_step_ids(tmp_path, closed):
    writer = make(tmp_path, range(60), full_resolution_window=20)
    if closed:
        writer.close()
    else:
        writer.flush()
        writer._lock.release()  # what the operating system does when a process dies
    again = RunWriter.create(config(tmp_path, full_resolution_window=20, resume=True), meta={})
    assert again.path == writer.path
    assert again.next_step == 60
    record(again, range(60, 90))
    again.close()
    reader = RunReader(again.path)
    assert reader.scalars().column("step").to_pylist() == list(range(90))
    step, got = reader.layer_points("head.bias", "grad_l2_norm")
    assert np.all(np.diff(step) > 0)
    assert got.tolist() == [value(s, 2) for s in step.tolist()]
    assert set(range(70, 90)) <= set(step.tolist())


@pytest.mark.parametrize("closed", [True, False])
def test_resume_from_an_earlier_checkpoint_drops_the_rewound_tail(tmp_path, closed):
    writer = make(tmp_path, range(60))
    writer.mark_spike(59, 9.0)
    if closed:
        writer.close()
    else:
        writer.flush()
        writer._lock.release()
    again = RunWriter.create(config(tmp_path, resume=True), meta={})
    again.append(40, {"loss": -1.0}, block(40))
    again.append(41, {"loss": -1.0}, block(41))
    again.close()
    reader = RunReader(again.path)
    assert reader.scalars().column("step").to_pylist() == list(range(42))
    assert reader.scalars().column("loss").to_pylist()[40:] == [-1.0, -1.0]
    check_layers(reader, range(42))
    assert reader.manifest.rewinds == [{"step": 40, "last": 59}]
    if closed:
        assert reader.manifest.windows == []
        assert (again.path / "spikes" / "rewound-1" / "spike_step_59.arrow").is_file()


def test_a_step_number_that_goes_back_within_one_process_is_a_rewind(tmp_path):
    writer = make(tmp_path, range(25))
    record(writer, range(12, 30))
    writer.close()
    check_layers(RunReader(writer.path), range(30))


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


def test_resume_after_a_torn_tail_cuts_it_off(tmp_path):
    writer = make(tmp_path, range(40))
    for path in (writer.path / "global.arrow", *(writer.path / "journal").iterdir()):
        os.truncate(path, path.stat().st_size - 11)
    writer._lock.release()
    again = RunWriter.create(config(tmp_path, resume=True), meta={})
    assert again.next_step == 30
    record(again, range(30, 50))
    again.close()
    check_layers(RunReader(again.path), range(50))
    assert plain_read(again.path / "global.arrow").num_rows == 50


def test_resume_without_an_earlier_run_starts_one(tmp_path):
    writer = RunWriter.create(config(tmp_path, resume=True), meta={})
    assert (writer.path.name, writer.next_step) == ("a", 0)
    with pytest.raises(ConfigError, match="resume = True: needs run_name"):
        RunWriter.create(config(tmp_path, run_name=None, resume=True), meta={})


def test_resuming_a_run_that_is_still_written_is_refused(tmp_path):
    writer = make(tmp_path, range(5))
    with pytest.raises(StoreError, match="still being written by another process"):
        RunWriter.create(config(tmp_path, resume=True), meta={})
    writer.close()
    RunWriter.create(config(tmp_path, resume=True), meta={}).close()


def test_a_folder_that_vanishes_is_an_error_of_one_line_and_writing_goes_on_when_it_is_back(tmp_path):
    writer = make(tmp_path, range(10))
    writer.path.rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match=r"\.arrow: cannot be written"):
        record(writer, range(10, 25))
    (tmp_path / "elsewhere").rename(writer.path)
    record(writer, range(25, 40))
    writer.close()
    step, _ = RunReader(writer.path).layer_points("head.bias", "grad_l2_norm")
    assert set(range(10)) | set(range(25, 40)) <= set(step.tolist())


def _fill_disk(root, found):
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    writer = RunWriter.create(config(Path(root)), meta={})
    failures = []
    for step in range(400):
        try:
            record(writer, [step])
        except StoreError as error:
            failures.append(str(error))
    try:
        writer.close()
    except StoreError as error:
        failures.append(str(error))
    found.put(failures)


def test_a_full_disk_is_reported_and_leaves_a_readable_run(tmp_path):
    fork = multiprocessing.get_context("fork")
    found = fork.Queue()
    process = fork.Process(target=_fill_disk, args=(str(tmp_path), found))
    process.start()
    failures = found.get(timeout=60)
    process.join()
    assert failures
    assert all("cannot be written" in failure and "\n" not in failure for failure in failures)
    reader = RunReader(tmp_path / "a")
    assert len(reader.scalars()) >= 50
    assert not reader.is_torn
    for name in NAMES:
        step, got = reader.layer_points(name, "grad_l2_norm")
        assert got.tolist() == [value(s, NAMES.index(name)) for s in step.tolist()]


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


def test_checkpoints_and_rng_states_have_their_places(tmp_path):
    writer = make(tmp_path, range(1))
    assert writer.rng_path(7) == writer.path / "rng_states" / "step_7.pkl"
    assert writer.checkpoint_path(7) == writer.path / "checkpoints" / "7.pt"
    assert writer.checkpoint_path(7).parent.is_dir()
    writer.close()
    other = RunWriter.create(config(tmp_path, checkpoint_on_spike="ck/at_{step}.bin"), meta={})
    assert other.checkpoint_path(7) == other.path / "ck" / "at_7.bin"
    assert other.checkpoint_path(7).parent.is_dir()


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
