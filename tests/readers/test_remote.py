"""Logs behind a URI; memory:// and file:// stand for s3:// and gs://, which speak through the same interface."""

import json
import sys
import uuid

import pytest
from tests.store.runs import make

from trainscope.core.errors import ReadError
from trainscope.readers import read_runs

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def bucket():
    files = fsspec.filesystem("memory")
    root = f"memory://bucket-{uuid.uuid4().hex}"
    yield root
    files.store.clear()


def put(uri, text):
    with fsspec.open(uri, "w") as file:
        file.write(text)
    return uri


LINES = "".join(json.dumps({"step": s, "loss": 2.0 - s / 100}) + "\n" for s in range(20))


def test_a_file_behind_a_uri_is_the_run_it_is_on_disk(bucket, tmp_path):
    (tmp_path / "log.jsonl").write_text(LINES, encoding="utf-8")
    (here,) = read_runs(tmp_path / "log.jsonl")
    uri = put(f"{bucket}/a/log.jsonl", LINES)
    for given in (uri, (tmp_path / "log.jsonl").as_uri()):
        (there,) = read_runs(given)
        assert there.source == given
        assert there.format == here.format
        assert there.series["train/loss"].value.tolist() == here.series["train/loss"].value.tolist()
    assert read_runs(uri)[0].name == "a"


def test_a_folder_of_checkpoints_behind_a_uri_names_no_file_of_this_machine(bucket):
    history = [{"step": s, "loss": 2.0, "epoch": s / 10} for s in (1, 2, 2, 3)]
    put(f"{bucket}/hf/checkpoint-3/trainer_state.json", json.dumps({"log_history": history}))
    (run,) = read_runs(f"{bucket}/hf")
    assert (run.format, run.name) == ("hf_trainer", "hf")
    shown = repr((run.source, run.notes))
    assert bucket in shown
    assert "trainscope-" not in shown


def test_recorded_runs_behind_a_uri_have_their_layers(bucket, tmp_path):
    make(tmp_path, range(60), storage_uri=f"{bucket}/runs").close()
    for uri in (f"{bucket}/runs/a", f"{bucket}/runs"):
        (run,) = read_runs(uri)
        assert run.name == "a"
        assert run.series["train/loss"].step.tolist() == list(range(60))
        assert run.layers.series("embed.weight", "grad_l2_norm").value.tolist() == [float(s) for s in range(60)]


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("memory://nowhere/log.csv", "memory://nowhere/log.csv: nothing is there"),
        ("nosuch://x/log.csv", "nosuch://x/log.csv: protocol not known: nosuch"),
        ("file:///nowhere/at/all.csv", "file:///nowhere/at/all.csv: nothing is there"),
    ],
)
def test_what_cannot_be_fetched_is_one_line_that_names_the_uri(uri, said):
    with pytest.raises(ReadError) as error:
        read_runs(uri)
    assert str(error.value) == said


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(ReadError, match=r"^s3://bucket/log\.csv: install s3fs") as error:
        read_runs("s3://bucket/log.csv")
    assert "\n" not in str(error.value)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ReadError, match=r"^s3://bucket/log\.csv: needs fsspec: pip install 'trainscope\[remote\]'$"):
        read_runs("s3://bucket/log.csv")
