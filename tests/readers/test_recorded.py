"""A folder of the recorder is a log like any other."""

import os

import pytest

from trainscope.core.errors import NoDataError, ReadError
from trainscope.core.run import LayerTable, ShareTable
from trainscope.readers import recorded
from trainscope.readers.source import open_source

from .recordings import NAMES, make, read


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
