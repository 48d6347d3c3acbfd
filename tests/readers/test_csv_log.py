from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trainscope.core.errors import NoDataError, ReadError
from trainscope.readers import csv_rows, read_runs

from .logs import as_csv, kinds, only, points, write


@pytest.fixture(params=["tolerant", "fast"])
def either_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(csv_rows, "ARROW_FROM", 0 if request.param == "fast" else 1 << 40)
    return request.param


@pytest.mark.usefixtures("either_parser")
def test_text_cells_are_left_out_and_counted(tmp_path: Path) -> None:
    text = "step,loss\n" + "".join(f"{i},{'OOM' if i in (3, 4) else i * 0.5}\n" for i in range(10))
    run = only(write(tmp_path, "a.csv", text))
    (note,) = run.notes
    assert (note.kind, note.count, note.start_step, note.end_step) == ("bad_cell", 2, 3, 4)
    assert "'OOM'" in note.message
    assert len(run.series["train/loss"]) == 8


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize("cell", ["nan", "NaN", "inf", "-Infinity", "NAN"])
def test_non_finite_cells_are_values(cell: str, tmp_path: Path) -> None:
    text = "step,loss\n" + "".join(f"{i},{cell if i == 4 else 1.5}\n" for i in range(8))
    run = only(write(tmp_path, "a.csv", text))
    assert np.isfinite(run.series["train/loss"].value).tolist() == [i != 4 for i in range(8)]
    assert kinds(run) == []


@pytest.mark.usefixtures("either_parser")
def test_a_bad_step_is_left_out_and_never_becomes_the_row_number(tmp_path: Path) -> None:
    steps = [
        "10",
        "20",
        "step-x",
        "",
        "nan",
        "60",
        "inf",
        "80",
        "90",
        "100",
        "110",
        "120",
        "130",
        *map(str, range(140, 900, 10)),
    ]
    run = only(write(tmp_path, "a.csv", "step,loss\n" + "".join(f"{s},1.5\n" for s in steps)))
    note = next(n for n in run.notes if n.kind == "bad_step")
    assert (note.count, note.start_step, note.end_step) == (4, 20, 80)
    assert "'step-x', 'blank', 'nan'" in note.message
    assert 3 not in run.series["train/loss"].step


@pytest.mark.usefixtures("either_parser")
def test_a_header_repeated_at_each_launch_is_left_out(tmp_path: Path) -> None:
    one = "step,loss\n" + "".join(f"{i},1.5\n" for i in range(20))
    runs = read_runs(write(tmp_path, "a.csv", one + one))
    assert [len(run.series["train/loss"]) for run in runs] == [20, 20]
    assert kinds(runs[0]) == ["repeated_header", "restart"]


@pytest.mark.usefixtures("either_parser")
def test_a_cut_last_row_is_left_out(tmp_path: Path) -> None:
    run = only(write(tmp_path, "a.csv", "step,loss,lr\n1,2.5,0.1\n2,2.25,0.1\n3,2."))
    assert kinds(run) == ["truncated"]
    assert points(run, "train/loss") == [(1, 2.5), (2, 2.25)]


@pytest.mark.usefixtures("either_parser")
def test_rows_of_another_width_are_left_out_and_counted(tmp_path: Path) -> None:
    text = "step,loss,lr\n" + "".join("7,1\n" if i == 3 else f"{i},2,0.1{',9,9' * (i == 5)}\n" for i in range(20))
    run = only(write(tmp_path, "a.csv", text))
    assert [(n.kind, n.count) for n in run.notes] == [("malformed_line", 2)]
    assert len(run.series["train/loss"]) == 18


def test_a_file_without_a_header_is_numbered(tmp_path: Path) -> None:
    run = only(write(tmp_path, "a.csv", "".join(f"{i * 100 + 99},{1 / (i + 1)},0.5\n" for i in range(10))))
    assert list(run.series) == ["column_2", "column_3"]
    assert run.series["column_2"].step[:2].tolist() == [99, 199]
    assert kinds(run) == ["no_header"]


def test_a_json_comment_is_configuration(tmp_path: Path) -> None:
    text = '#{"t_start": 1652871292.5, "env_id": "Ant-v3"}\nr,l,t\n' + "".join(f"{-i},9,{i}.5\n" for i in range(5))
    run = only(write(tmp_path, "0.monitor.csv", text))
    assert run.config["env_id"] == "Ant-v3"
    assert run.x_axis == "row"
    assert run.series["train/reward"].value.tolist() == [0.0, -1.0, -2.0, -3.0, -4.0]
    assert run.series["train/reward"].time.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]


def test_a_header_in_a_comment_is_the_header(tmp_path: Path) -> None:
    run = only(write(tmp_path, "a.csv", "# step,loss\n1,0.5\n2,0.25\n"))
    assert points(run, "train/loss") == [(1, 0.5), (2, 0.25)]


def test_whole_epochs_are_the_axis(tmp_path: Path) -> None:
    run = only(write(tmp_path, "a.csv", "epoch,loss,val_loss\n" + "".join(f"{i},1.0,2.0\n" for i in range(6))))
    assert run.x_axis == "epoch"
    assert run.series["eval/loss"].step.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("epoch", ["0.{}", "1"])
def test_fractional_or_repeated_epochs_leave_only_the_row(epoch: str, tmp_path: Path) -> None:
    text = "epoch,loss\n" + "".join(f"{epoch.format(i)},1.0\n" for i in range(1, 9))
    run = only(write(tmp_path, "a.csv", text))
    assert run.x_axis == "row"
    assert run.series["train/loss"].step.tolist() == list(range(8))
    assert kinds(run) == ["row_axis"]


def test_a_name_that_stands_twice_is_numbered(tmp_path: Path) -> None:
    run = only(write(tmp_path, "a.csv", "step,loss,loss\n1,2.5,9\n2,2.25,9\n"))
    assert kinds(run) == ["renamed"]
    assert points(run, "train/loss") == [(1, 2.5), (2, 2.25)]


def test_prose_with_commas_is_no_table(tmp_path: Path) -> None:
    text = "".join(f"step {i}, loss {1 / i:.3f}, lr 0.1\n" for i in range(1, 30))
    assert only(write(tmp_path, "train.log", text)).format == "text"


@pytest.mark.parametrize("text", ["step,loss\n", "step,loss\n,\n"])
def test_a_table_without_values_is_no_data(text: str, tmp_path: Path) -> None:
    with pytest.raises(NoDataError):
        read_runs(write(tmp_path, "a.csv", text))


def test_a_table_of_text_is_refused_even_by_force(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="is no table"):
        read_runs(write(tmp_path, "a.csv", "name,note\na,b\nc,d\n"), format="csv")


def test_dates_are_the_time_of_each_point(tmp_path: Path) -> None:
    rows = [{"step": i, "timestamp": f"2024-01-01T00:00:0{i}Z", "loss": 1.0} for i in range(4)]
    run = only(write(tmp_path, "a.csv", as_csv(rows)))
    assert run.series["train/loss"].time.tolist() == [1704067200.0 + i for i in range(4)]
    assert "timestamp" not in run.series


def test_a_time_per_step_is_no_clock(tmp_path: Path) -> None:
    rows = [{"iteration": i, "time": 0.4 + 0.01 * (i % 3), "total_loss": 1.0} for i in range(9)]
    run = only(write(tmp_path, "a.csv", as_csv(rows)))
    assert run.series["train/loss"].time is None
    assert len(run.series["time"]) == 9
