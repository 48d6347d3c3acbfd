from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from trainscope.core.errors import NoDataError, ReadError
from trainscope.readers import find_logs, read_runs, tensorboard

from .logs import kinds, only, points, write

pytest.importorskip("tbparse", reason="the tensorboard extra is not installed")

# tensorboard 2.21 still sets an attribute that protobuf and NumPy warn about.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def _events(folder: Path, values: dict[str, dict[int, float]], *, new_style: bool = False, suffix: str = "") -> Path:
    """Write an event file with TensorBoard's own writer."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    folder.mkdir(parents=True, exist_ok=True)
    before = set(folder.iterdir())
    writer = EventFileWriter(str(folder), filename_suffix=suffix)
    for tag, series in values.items():
        for step, value in series.items():
            if new_style:
                tensor = TensorProto(dtype=1, float_val=[value])
                meta = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
                one = Summary.Value(tag=tag, tensor=tensor, metadata=meta)
            else:
                one = Summary.Value(tag=tag, simple_value=value)
            writer.add_event(Event(wall_time=1.7e9 + step, step=step, summary=Summary(value=[one])))
    writer.close()
    (new,) = set(folder.iterdir()) - before
    return new


LOSS = {"train/loss": {i: 3.0 - i / 16 for i in range(20)}, "eval/loss": dict.fromkeys(range(0, 20, 5), 2.5)}


@pytest.mark.parametrize("new_style", [False, True])
def test_scalars_of_an_event_file_are_read_with_their_times(new_style: bool, tmp_path: Path) -> None:
    run = only(_events(tmp_path / "exp1", LOSS, new_style=new_style))
    assert points(run, "train/loss") == [(i, 3.0 - i / 16) for i in range(20)]
    assert points(run, "eval/loss") == [(i, 2.5) for i in range(0, 20, 5)]
    assert run.series["train/loss"].time.tolist() == [1.7e9 + i for i in range(20)]
    assert (run.name, run.format) == ("exp1", "tensorboard")


def test_a_folder_of_runs_is_one_run_for_each(tmp_path: Path) -> None:
    for name in ("b", "a"):
        _events(tmp_path / name, LOSS)
    runs = read_runs(tmp_path)
    assert [run.name for run in runs] == ["a", "b"]
    assert {run.source for run in runs} == {str(tmp_path)}


def test_train_and_validation_folders_are_one_run(tmp_path: Path) -> None:
    for side in ("train", "validation"):
        _events(tmp_path / "fit" / side, {"epoch_loss": dict.fromkeys(range(5), 1.0)})
    run = only(tmp_path / "fit")
    assert sorted(run.series) == ["eval/loss", "train/loss"]


def test_a_resume_in_a_second_file_is_a_rewind(tmp_path: Path) -> None:
    _events(tmp_path, {"loss": {i * 10: 1.0 for i in range(40)}}, suffix=".a")
    _events(tmp_path, {"loss": {i * 10: 2.0 for i in range(30, 60)}}, suffix=".b")
    run = only(tmp_path)
    assert kinds(run) == ["rewind"]
    assert run.series["train/loss"].value.tolist() == [1.0] * 30 + [2.0] * 30


def test_non_finite_scalars_are_values(tmp_path: Path) -> None:
    run = only(_events(tmp_path, {"loss": {0: 1.0, 1: float("nan"), 2: float("inf")}}))
    assert np.isfinite(run.series["train/loss"].value).tolist() == [True, False, False]


def test_a_folder_of_event_files_is_found_once(tmp_path: Path) -> None:
    _events(tmp_path / "a", LOSS)
    assert find_logs([str(tmp_path)]) == [str(tmp_path / "a")]


def test_an_event_file_without_scalars_is_no_data(tmp_path: Path) -> None:
    with pytest.raises(NoDataError, match="no scalars"):
        read_runs(_events(tmp_path, {}))


def test_a_cut_event_file_gives_what_it_holds(tmp_path: Path) -> None:
    path = _events(tmp_path, LOSS)
    path.write_bytes(path.read_bytes()[:-300])
    assert 5 < len(only(path).series["train/loss"]) <= 20


def test_a_broken_event_file_is_refused_in_one_line(tmp_path: Path) -> None:
    path = write(tmp_path, "events.out.tfevents.1.host", b"\x18" + bytes(200))
    with pytest.raises((ReadError, NoDataError)) as caught:
        read_runs(path, format="tensorboard")
    assert "\n" not in str(caught.value)


def test_without_the_extra_the_way_to_install_it_is_named(tmp_path: Path, monkeypatch) -> None:
    path = _events(tmp_path, LOSS)
    monkeypatch.setitem(sys.modules, "tbparse", None)
    with pytest.raises(ReadError, match=r"pip install '\.\[tensorboard\]'") as caught:
        read_runs(path)
    assert "\n" not in str(caught.value)
    assert tensorboard.NAME == "tensorboard"
