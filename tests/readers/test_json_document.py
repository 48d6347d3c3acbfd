from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainscope.core.errors import ReadError
from trainscope.readers import read_runs

from .logs import kinds, only, points, write


def test_keras_history_is_read_by_row(tmp_path: Path) -> None:
    run = only(write(tmp_path, "history.json", json.dumps({"loss": [3.0, 2.0, 1.0], "val_loss": [3.5, 2.5, 2.0]})))
    assert points(run, "train/loss") == [(0, 3.0), (1, 2.0), (2, 1.0)]
    assert run.x_axis == "row"
    assert run.name == tmp_path.name


def test_a_cut_array_is_read_up_to_the_cut(tmp_path: Path) -> None:
    run = only(write(tmp_path, "a.json", '[{"step": 1, "loss": 2},\n {"step": 2, "loss": 1}, {"step": 3, "l'))
    assert kinds(run) == ["truncated"]
    assert points(run, "train/loss") == [(1, 2.0), (2, 1.0)]


def test_elements_that_are_no_objects_are_counted(tmp_path: Path) -> None:
    run = only(write(tmp_path, "a.json", '[{"step": 1, "loss": 2}, 7, null, {"step": 2, "loss": 1}]'))
    assert [(n.kind, n.count) for n in run.notes] == [("malformed_line", 2)]


def test_a_pretty_printed_array_with_nan_tokens_is_read(tmp_path: Path) -> None:
    rows = [{"step": i, "loss": float("nan") if i == 2 else 1.0} for i in range(4)]
    run = only(write(tmp_path, "a.json", json.dumps(rows, indent=2)))
    assert run.series["train/loss"].value[1] == 1.0
    assert run.series["train/loss"].value[2] != run.series["train/loss"].value[2]


@pytest.mark.parametrize("content", ['{"a": {"b": 1}}', '{"a": []}', "3", '"text"'])
def test_other_documents_are_refused_in_one_line(content: str, tmp_path: Path) -> None:
    for form in (None, "json"):
        with pytest.raises(ReadError) as caught:
            read_runs(write(tmp_path, "a.json", content), format=form)
        assert "\n" not in str(caught.value)
