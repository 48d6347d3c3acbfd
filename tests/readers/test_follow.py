from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainscope.core.errors import NoReaderError
from trainscope.core.run import Run
from trainscope.readers import json_rows
from trainscope.readers.follow import Follower

from .logs import as_csv, as_jsonl, as_state, only, write


def _values(run) -> dict[str, list[float]]:
    return {name: series.value.tolist() for name, series in run.series.items()}


@pytest.mark.parametrize(("name", "form"), [("a.jsonl", as_jsonl), ("a.csv", as_csv), ("metrics.csv", as_csv)])
def test_growing_piece_by_piece_ends_as_reading_it_whole(
    name: str, form: Any, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    for row in rows:
        row["epoch"] = row["step"] // 50
    content = form(rows).encode()
    path = tmp_path / name
    follower = Follower(path)
    assert follower.poll() == []
    runs: list[Run] = []
    with path.open("ab") as file:
        for start in range(0, len(content), 173):
            file.write(content[start : start + 173])
            file.flush()
            runs = follower.poll() or runs
    (run,) = runs
    whole = only(path)
    assert _values(run) == _values(whole)
    assert run.notes == whole.notes
    assert run.format == whole.format
    assert run.name == whole.name


def test_a_poll_without_news_is_none(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    follower = Follower(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert follower.poll()
    assert follower.poll() == []


def test_only_new_bytes_are_parsed(rows: list[dict[str, Any]], tmp_path: Path, monkeypatch) -> None:
    path = write(tmp_path, "a.jsonl", as_jsonl(rows))
    follower = Follower(path)
    follower.poll()
    parsed: list[int] = []
    real = json_rows._parse_tolerantly
    monkeypatch.setattr(json_rows, "_parse_tolerantly", lambda data, *a: (parsed.append(len(data)), real(data, *a))[1])
    line = '{"step": 999, "loss": 0.5}\n'
    with path.open("a") as file:
        file.write(line)
    (run,) = follower.poll()
    assert parsed == [len(line)]
    assert run.last_step == 999


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", '{"step": 1, "loss": 2}\n{"step": 2, "lo')
    follower = Follower(path)
    (run,) = follower.poll()
    assert run.last_step == 1
    assert run.notes == ()
    with path.open("a") as file:
        file.write('ss": 3}\n')
    (run,) = follower.poll()
    assert run.series["train/loss"].value.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("in_place", [True, False])
def test_a_file_that_is_replaced_is_read_anew(in_place: bool, tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", "".join(f'{{"step": {i}, "loss": 1}}\n' for i in range(50)))
    follower = Follower(path)
    follower.poll()
    if not in_place:
        path.rename(tmp_path / "a.jsonl.1")
    path.write_text("".join(f'{{"step": {i}, "loss": 2}}\n' for i in range(10, 15)))
    (run,) = follower.poll()
    assert run.series["train/loss"].value.tolist() == [2.0] * 5


def test_a_trainer_state_is_read_again_when_it_changes(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    path = write(tmp_path, "trainer_state.json", as_state(rows[:10]))
    follower = Follower(path)
    (first,) = follower.poll()
    write(tmp_path, "trainer_state.json", as_state(rows))
    (second,) = follower.poll()
    assert len(second.series["train/loss"]) > len(first.series["train/loss"])


def test_every_launch_is_followed(tmp_path: Path) -> None:
    text = "".join(f'{{"step": {i}, "loss": {k}}}\n' for k in (1, 2) for i in range(30))
    runs = Follower(write(tmp_path, "a.jsonl", text)).poll()
    assert [set(run.series["train/loss"].value.tolist()) for run in runs] == [{1.0}, {2.0}]


@pytest.mark.parametrize(
    ("name", "text"), [("a.jsonl", '{"step": 1, "loss": 2}\n{"step": 2, "loss": 3}'), ("a.csv", "step,loss\n1,2\n2,3")]
)
def test_a_last_line_without_an_end_is_taken_at_the_end(name: str, text: str, tmp_path: Path) -> None:
    follower = Follower(write(tmp_path, name, text))
    follower.poll()
    (run,) = follower.finish()
    assert run.series["train/loss"].value.tolist() == [2.0, 3.0]


def test_a_log_of_one_line_without_an_end_is_read(tmp_path: Path) -> None:
    follower = Follower(write(tmp_path, "a.jsonl", '{"step": 1, "loss": 2}'))
    assert follower.poll() == []
    (run,) = follower.finish()
    assert run.last_step == 1


def test_at_the_end_half_a_line_is_no_news(tmp_path: Path) -> None:
    follower = Follower(write(tmp_path, "a.jsonl", '{"step": 1, "loss": 2}\n{"step": 2, "lo'))
    follower.poll()
    (run,) = follower.finish()
    assert run.last_step == 1
    follower = Follower(write(tmp_path, "b.jsonl", '{"step": 1, "loss": 2}\n'))
    assert follower.poll()
    assert follower.finish() == []


def test_a_file_of_another_kind_is_refused_once_it_has_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", "starting\n")
    follower = Follower(path)
    assert follower.poll() == []
    path.write_text("starting\nloading data\nbuilding model\nstill here\n")
    with pytest.raises(NoReaderError):
        follower.poll()


def test_a_folder_is_read_again_only_when_something_in_it_changes(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    write(tmp_path, "checkpoint-10/trainer_state.json", as_state(rows[:10]))
    follower = Follower(tmp_path)
    assert follower.poll()
    assert follower.poll() == []
    write(tmp_path, "checkpoint-20/trainer_state.json", as_state(rows[:20]))
    (run,) = follower.poll()
    assert run.last_step == rows[19]["step"]


def test_a_printed_text_is_waited_for_and_followed(tmp_path: Path) -> None:
    path = write(tmp_path, "train.log", "loading the data\ncompiling\n" * 20)
    follower = Follower(path)
    assert follower.poll() == []
    with path.open("a") as file:
        file.write("".join(f"step {i}: loss {5 - i / 100}\n" for i in range(50)))
    (run,) = follower.poll()
    assert len(run.series["train/loss"]) == 50
    with path.open("a") as file:
        file.write("".join(f"step {i}: loss {5 - i / 100}\n" for i in range(50, 80)))
    (run,) = follower.poll()
    assert len(run.series["train/loss"]) == 80
    assert follower.poll() == []
