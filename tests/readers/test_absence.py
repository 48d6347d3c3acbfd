from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .logs import as_csv, as_jsonl, kinds, only, write


def _nan_steps(path: Path, name: str) -> list[int]:
    series = only(path).get(name)
    return [] if series is None else series.step[np.isnan(series.value)].tolist()


def _train(n: int = 40) -> list[dict[str, Any]]:
    return [{"step": i, "loss": 1.0 + i, "lr": 0.1, "grad_norm": 0.5} for i in range(n)]


@pytest.mark.parametrize("form", ["jsonl", "csv"])
@pytest.mark.parametrize("first", [20, 35, 39])
def test_a_loss_that_vanishes_while_its_companions_stay_is_nan(form: str, first: int, tmp_path: Path) -> None:
    rows = _train()
    for row in rows[first:]:
        row["loss"] = None if form == "jsonl" else ""
    path = write(tmp_path, f"a.{form}", as_jsonl(rows) if form == "jsonl" else as_csv(rows))
    assert _nan_steps(path, "train/loss") == list(range(first, 40))
    assert kinds(only(path)) == ["null_value"]


def test_a_null_in_the_middle_is_nan(tmp_path: Path) -> None:
    rows = _train()
    rows[7]["loss"] = rows[8]["loss"] = None
    assert _nan_steps(write(tmp_path, "a.jsonl", as_jsonl(rows)), "train/loss") == [7, 8]


def test_loss_and_gradient_norm_that_vanish_together_are_nan(tmp_path: Path) -> None:
    rows = _train()
    for row in rows[30:]:
        row["loss"] = row["grad_norm"] = ""
    path = write(tmp_path, "a.csv", as_csv(rows))
    assert _nan_steps(path, "train/loss") == _nan_steps(path, "train/grad_norm") == list(range(30, 40))


def test_the_only_metric_of_a_row_that_is_null_is_nan(tmp_path: Path) -> None:
    rows = [{"step": i, "loss": 1.0 if i < 3 else None} for i in range(6)]
    assert _nan_steps(write(tmp_path, "a.jsonl", as_jsonl(rows)), "train/loss") == [3, 4, 5]
    assert _nan_steps(write(tmp_path, "a.csv", as_csv(rows).replace("None", "")), "train/loss") == [3, 4, 5]


def test_a_log_whose_only_loss_is_always_null_is_all_nan(tmp_path: Path) -> None:
    rows = [{"step": i, "loss": None} for i in range(4)]
    assert _nan_steps(write(tmp_path, "a.jsonl", as_jsonl(rows)), "train/loss") == [0, 1, 2, 3]


@pytest.mark.parametrize("every", [2, 5, 20])
def test_evaluation_cells_that_are_blank_between_evaluations_are_absent(every: int, tmp_path: Path) -> None:
    rows = _train()
    for i, row in enumerate(rows):
        row["eval_loss"] = 2.0 if i % every == 0 else ""
        row["eval_acc"] = 0.5 if i % every == 0 else ""
    path = write(tmp_path, "a.csv", as_csv(rows))
    assert _nan_steps(path, "eval/loss") == []
    assert kinds(only(path)) == []


def test_an_evaluation_that_lacks_its_loss_but_has_its_accuracy_is_nan(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = _train()
    for i in range(0, 40, 4):
        rows[i] |= {"eval_loss": 2.0 if i < 32 else "", "eval_acc": 0.5}
    assert _nan_steps(write(tmp_path, "a.csv", as_csv(rows)), "eval/loss") == [32, 36]


def test_a_null_evaluation_key_on_every_training_row_is_absent(tmp_path: Path) -> None:
    rows = [row | {"eval_loss": None} for row in _train()]
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert "eval/loss" not in run.series
    assert kinds(run) == ["empty_column"]


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_loss_that_is_null_from_the_first_row_on_is_nan(form: str, tmp_path: Path) -> None:
    rows = [row | {"loss": None if form == "jsonl" else ""} for row in _train()]
    path = write(tmp_path, f"a.{form}", as_jsonl(rows) if form == "jsonl" else as_csv(rows))
    assert _nan_steps(path, "train/loss") == list(range(40))
    assert kinds(only(path)) == ["null_value"]


def test_an_empty_loss_beside_a_full_one_is_only_noted(tmp_path: Path) -> None:
    rows = [row | {"train_loss_epoch": ""} for row in _train()]
    assert kinds(only(write(tmp_path, "a.csv", as_csv(rows)))) == ["empty_column"]


def test_rows_of_training_and_validation_that_alternate_have_no_nan(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    for i in range(40):
        rows.append({"epoch": i // 10, "step": i, "train_loss": 1.0, "val_loss": "", "lr": ""})
        rows.append({"epoch": i // 10, "step": i, "train_loss": "", "val_loss": 2.0, "lr": ""})
        rows.append({"epoch": i // 10, "step": i, "train_loss": "", "val_loss": "", "lr": 0.1})
    assert kinds(only(write(tmp_path, "metrics.csv", as_csv(rows)))) == []


def test_a_metric_that_starts_late_is_not_nan_before(tmp_path: Path) -> None:
    rows = _train()
    for row in rows[:10]:
        row["grad_norm"] = ""
    assert kinds(only(write(tmp_path, "a.csv", as_csv(rows)))) == []


def test_a_missing_key_is_absent_even_where_a_null_would_be_nan(tmp_path: Path) -> None:
    rows = _train()
    for row in rows[30:]:
        del row["loss"]
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert kinds(run) == []
    assert len(run.series["train/loss"]) == 30


def test_a_closing_row_of_totals_is_not_nan(tmp_path: Path) -> None:
    names = ["train/loss", "validation/loss", "validation/accuracy", "test/loss", "test/accuracy"]
    rows: list[dict[str, Any]] = [{"step": i * 10} | dict.fromkeys(names, 1.0) | {"score": i} for i in range(20)]
    rows.append({"step": 195} | dict.fromkeys(names, "") | {"score": 20})
    run = only(write(tmp_path, "a.csv", as_csv(rows)))
    assert kinds(run) == []
    assert run.series["eval/loss"].step[-1] == 190


def test_nan_tokens_need_no_note(tmp_path: Path) -> None:
    rows = _train()
    rows[5]["loss"] = math.nan
    run = only(write(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    assert kinds(run) == []
    assert _nan_steps(write(tmp_path, "a.jsonl", as_jsonl(rows)), "train/loss") == [5]


def test_rows_with_a_step_alone_are_nan_of_the_usual_metrics_only(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = _train()
    rows[1]["eval_loss"] = 2.0
    rows += [{"step": i} for i in range(40, 44)]
    path = write(tmp_path, "a.csv", as_csv(rows))
    assert _nan_steps(path, "train/loss") == [40, 41, 42, 43]
    assert _nan_steps(path, "eval/loss") == []
