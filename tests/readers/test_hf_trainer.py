from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainscope.core.errors import NoDataError, ReadError
from trainscope.readers import read_runs

from .logs import as_state, kinds, only, write

SUMMARY = {"step": 200, "epoch": 3.0, "train_runtime": 91.5, "train_loss": 3.125, "total_flos": 1e17}


def test_the_average_of_the_closing_row_never_becomes_a_point(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    run = only(write(tmp_path, "trainer_state.json", as_state([*rows, SUMMARY])))
    assert all(3.125 not in s.value for s in run.series.values())
    assert "train_runtime" not in run.series
    assert run.config["summary.train_loss"] == 3.125
    assert kinds(run) == ["summary_row"]


def test_a_run_of_one_row_with_a_summary_keeps_the_row(tmp_path: Path) -> None:
    run = only(write(tmp_path, "trainer_state.json", as_state([{"step": 1, "loss": 2.0}, SUMMARY])))
    assert run.series["train/loss"].value.tolist() == [2.0]


def test_of_a_folder_the_most_advanced_state_is_read_once(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    for number, end in ((9, 9), (50, 12), (100, 23)):
        write(tmp_path, f"checkpoint-{number}/trainer_state.json", as_state(rows[:end]))
    run = only(tmp_path)
    assert run.name == tmp_path.name
    assert run.source == str(tmp_path)
    assert run.last_step == rows[22]["step"]


def test_the_folders_own_state_is_read_if_it_is_as_advanced(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    write(tmp_path, "checkpoint-200/trainer_state.json", as_state(rows))
    write(tmp_path, "trainer_state.json", as_state([*rows, SUMMARY]))
    assert kinds(only(tmp_path)) == ["summary_row"]


def test_training_arguments_beside_the_state_are_configuration(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    write(tmp_path, "args.json", json.dumps({"learning_rate": 1e-4, "bf16": True, "nested": {"a": 1}}))
    run = only(write(tmp_path, "trainer_state.json", as_state(rows)))
    assert run.config["learning_rate"] == 1e-4
    assert run.config["bf16"] is True
    assert "nested" not in run.config
    assert run.config["max_steps"] == 500


def test_a_cut_state_is_read_up_to_the_cut(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    text = as_state(rows)
    run = only(write(tmp_path, "trainer_state.json", text[: len(text) * 2 // 3]))
    assert kinds(run) == ["truncated"]
    assert 20 < len(run.series["train/loss"]) < 40


def test_strings_that_a_callback_added_do_not_shadow_the_learning_rate(tmp_path: Path) -> None:
    history = [{"step": i, "loss": 1.0, "learning_rate": 0.5, "GPU": f"{i}.2GB"} for i in range(1, 6)]
    run = only(write(tmp_path, "trainer_state.json", as_state(history)))
    assert run.series["learning_rate"].value.tolist() == [0.5] * 5
    assert kinds(run) == ["text_column"]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ('{"log_history": []}', NoDataError),
        ('{"log_history": [', ReadError),
        ('{"log_history": [{"epoch": "x"}]}', NoDataError),
    ],
)
def test_a_state_without_points_is_refused(content: str, error: type, tmp_path: Path) -> None:
    with pytest.raises(error):
        read_runs(write(tmp_path, "trainer_state.json", content))


def test_forcing_the_format_on_a_folder_without_states_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"no trainer_state\.json"):
        read_runs(tmp_path, format="hf_trainer")
