from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainscope.core.errors import NoDataError
from trainscope.readers import find_logs

from .logs import as_csv, as_jsonl, as_state, write


@pytest.fixture
def tree(rows: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path, "runs/b/metrics.csv", as_csv(rows))
    write(tmp_path, "runs/a/log.jsonl.gz", b"")
    write(tmp_path, "runs/a/config.json", "{}")
    write(tmp_path, "runs/a/model.safetensors", b"\0")
    write(tmp_path, "runs/.hidden/log.jsonl", as_jsonl(rows))
    write(tmp_path, "runs/a/.log.jsonl", as_jsonl(rows))
    write(tmp_path, "runs/hf/checkpoint-10/trainer_state.json", as_state(rows[:4]))
    write(tmp_path, "runs/hf/checkpoint-20/trainer_state.json", as_state(rows))
    write(tmp_path, "runs/tb/events.out.tfevents.1.host", b"")
    write(tmp_path, "runs/tb/hparams/events.out.tfevents.2.host", b"")
    write(tmp_path, "runs/tb_keras/train/events.out.tfevents.3.host", b"")
    write(tmp_path, "runs/tb_keras/validation/events.out.tfevents.4.host", b"")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("tree")
def test_a_folder_gives_its_logs_in_order_and_each_run_once() -> None:
    names = ("a/log.jsonl.gz", "b/metrics.csv", "hf", "tb", "tb_keras")
    assert find_logs(["runs"]) == [str(Path("runs", name)) for name in names]


@pytest.mark.usefixtures("tree")
def test_patterns_are_sorted_and_nothing_is_named_twice() -> None:
    found = find_logs(["runs/*/*.csv", "runs/b", "runs/**/*.gz"])
    assert found == [str(Path("runs/b/metrics.csv")), str(Path("runs/a/log.jsonl.gz"))]


@pytest.mark.usefixtures("tree")
def test_a_named_file_is_taken_whatever_it_is_called() -> None:
    assert find_logs(["runs/a/config.json", "-", "missing.csv"]) == ["runs/a/config.json", "-", "missing.csv"]


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("*.nothing", "no file matches this pattern"),
        ("runs/.hidden/..", None),
        ("empty", "no log in this folder"),
    ],
)
def test_what_matches_nothing_is_no_data(given: str, message: str | None) -> None:
    Path("empty").mkdir()
    if message is None:
        assert find_logs([given])
        return
    with pytest.raises(NoDataError, match=message):
        find_logs([given])


def test_no_paths_are_no_data() -> None:
    with pytest.raises(NoDataError):
        find_logs([])


def test_prose_in_a_folder_is_skipped_but_a_broken_log_is_not(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    write(tmp_path, "notes.txt", "The run went well, I think.\n")
    write(tmp_path, "hyperparameters.json", '{"lr": 0.1}')
    write(tmp_path, "keras.log", as_csv(rows))
    write(tmp_path, "empty.csv", "")
    write(tmp_path, "history.json", '{"loss": [1.0, 0.5]}')
    assert [Path(found).name for found in find_logs([str(tmp_path)])] == ["empty.csv", "history.json", "keras.log"]


@pytest.mark.parametrize("name", ["a.config.json", "a.hparams.json", "A.CONFIG.JSON"])
def test_the_settings_beside_a_log_are_no_log(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"step": 0, "loss": 1}\n')
    (tmp_path / name).write_text('{"lr": "fast", "loss": 0.5, "step": 3}')
    assert find_logs([str(tmp_path)]) == [str(tmp_path / "a.jsonl")]


def test_what_a_script_printed_beside_its_recording_is_no_second_run(tmp_path: Path) -> None:
    printed = write(tmp_path, "output.log", "".join(f"step {i} loss {3 - i / 50:.3f}\n" for i in range(50)))
    assert find_logs([str(tmp_path)]) == [str(printed)]
    (tmp_path / "smoke").mkdir()
    (tmp_path / "smoke" / "global.arrow").touch()
    assert find_logs([str(tmp_path)]) == [str(tmp_path / "smoke")]
    assert find_logs([str(printed)]) == [str(printed)]
