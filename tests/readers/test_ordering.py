from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainscope.core.run import Note
from trainscope.readers import read_runs
from trainscope.readers.ordering import find_seams, superseded

from .logs import as_csv, as_jsonl, kinds, only, points, write


def _rows(*steps: int, start: float = 0.0) -> list[dict[str, Any]]:
    return [{"step": step, "loss": start + i, "lr": 0.1} for i, step in enumerate(steps)]


def _note(run, kind: str) -> Note:
    (found,) = [note for note in run.notes if note.kind == kind]
    return found


def test_steps_that_rise_have_no_seams() -> None:
    assert find_seams(np.array([0, 1, 1, 2, 10])) == ([], None)


def test_a_resume_from_a_checkpoint_is_a_rewind_and_the_later_values_win(tmp_path: Path) -> None:
    rows = _rows(*range(0, 500, 10)) + _rows(*range(300, 700, 10), start=1000)
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert kinds(run) == ["rewind"]
    note = _note(run, "rewind")
    assert (note.count, note.start_step, note.end_step) == (20, 300, 490)
    assert points(run, "train/loss")[29:32] == [(290, 29.0), (300, 1000.0), (310, 1001.0)]
    assert len(run.series["train/loss"]) == 70


def test_a_resume_that_logs_at_other_steps_replaces_the_old_branch(tmp_path: Path) -> None:
    rows = _rows(*range(0, 500, 10)) + _rows(*range(305, 900, 10), start=1000)
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert kinds(run) == ["rewind"]
    steps = run.series["train/loss"].step
    assert (np.diff(steps) >= 5).all()
    assert 310 not in steps
    assert 305 in steps


def test_a_resume_takes_the_evaluations_of_the_old_branch_with_it(tmp_path: Path) -> None:
    old = _rows(*range(0, 500, 10))
    old.insert(36, {"step": 350, "eval_loss": 9.0})
    run = only(
        write(
            tmp_path,
            "a.jsonl",
            as_jsonl(old + _rows(*range(300, 700, 10)) + [{"step": 690, "eval_loss": 1.0}]),
        )
    )
    assert points(run, "eval/loss") == [(690, 1.0)]


def test_two_resumes_are_two_notes(tmp_path: Path) -> None:
    rows = _rows(*range(0, 300, 10)) + _rows(*range(200, 400, 10)) + _rows(*range(350, 600, 10))
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert [(n.start_step, n.end_step) for n in run.notes if n.kind == "rewind"] == [(200, 290), (350, 390)]


def test_rows_shuffled_by_writers_are_sorted_and_none_is_lost(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    steps = np.arange(0, 2000, 10).reshape(-1, 8)
    for block in steps:
        random.shuffle(block)
    rows = [{"step": int(s), "loss": float(s)} for s in steps.ravel()]
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert kinds(run) == ["out_of_order"]
    assert points(run, "train/loss") == [(s, float(s)) for s in range(0, 2000, 10)]


def test_one_late_row_is_out_of_order_and_no_resume(tmp_path: Path) -> None:
    rows = _rows(0, 10, 20, 30, 50, 60, 40, 70, 80, 90)
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    note = _note(run, "out_of_order")
    assert (note.count, note.start_step, note.end_step) == (1, 40, 40)
    assert points(run, "train/loss")[4] == (40, 6.0)


def test_a_counter_that_starts_again_is_two_runs(tmp_path: Path) -> None:
    rows = _rows(*range(0, 300, 10)) + _rows(*range(0, 200, 10), start=500)
    first, second = read_runs(write(tmp_path, "two.jsonl", as_jsonl(rows)))
    assert (first.name, second.name) == ("two#1", "two#2")
    assert (len(first.series["train/loss"]), len(second.series["train/loss"])) == (30, 20)
    assert second.series["train/loss"].value[0] == 500
    assert kinds(first) == kinds(second) == ["restart"]


def test_a_launch_aborted_at_once_is_no_run_of_its_own(tmp_path: Path) -> None:
    rows = _rows(0, 10) + _rows(*range(0, 3000, 10), start=500)
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert kinds(run) == ["restart"]
    assert run.name == "a"
    assert run.series["train/loss"].value[0] == 500


def test_the_last_launch_is_kept_however_short(tmp_path: Path) -> None:
    runs = read_runs(write(tmp_path, "a.jsonl", as_jsonl(_rows(*range(0, 3000, 10)) + _rows(0, 10, start=500))))
    assert [len(run.series["train/loss"]) for run in runs] == [300, 2]


def test_an_evaluation_logged_before_the_first_row_of_a_restart_belongs_to_it(tmp_path: Path) -> None:
    first = _rows(*range(10, 300, 10))
    second = [{"step": 0, "eval_loss": 7.0}, *_rows(*range(10, 300, 10))]
    runs = read_runs(write(tmp_path, "a.jsonl", as_jsonl(first + second)))
    assert runs[0].get("eval/loss") is None
    assert points(runs[1], "eval/loss") == [(0, 7.0)]


def test_two_processes_writing_one_file_give_one_sorted_run(tmp_path: Path) -> None:
    rows = []
    for step in range(0, 1000, 10):
        rows += _rows(step) + (_rows(step - 20, start=1.0) if step >= 20 else [])
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert set(kinds(run)) == {"out_of_order", "duplicate_step"}
    assert len(run.series["train/loss"]) == 100


def test_a_repeated_step_keeps_its_last_value(tmp_path: Path) -> None:
    run = only(write(tmp_path, "a.jsonl", as_jsonl(_rows(0, 10, 20, 20, 30))))
    note = _note(run, "duplicate_step")
    assert (note.count, note.start_step, note.end_step) == (1, 20, 20)
    assert points(run, "train/loss") == [(0, 0.0), (10, 1.0), (20, 3.0), (30, 4.0)]


def test_training_and_evaluation_rows_of_one_step_are_no_duplicates(tmp_path: Path) -> None:
    rows = [
        row
        for step in range(0, 100, 10)
        for row in ({"step": step, "epoch": 0.5, "loss": 1.0}, {"step": step, "epoch": 0.5, "eval_loss": 2.0})
    ]
    assert kinds(only(write(tmp_path, "a.jsonl", as_jsonl(rows)))) == []


def test_a_log_that_begins_far_from_zero_can_be_resumed_at_its_begin(tmp_path: Path) -> None:
    rows = _rows(*range(8000, 9000, 10)) + _rows(*range(8000, 9500, 10), start=1000)
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert kinds(run) == ["rewind"]


def test_an_epoch_counter_that_starts_again_is_two_runs(tmp_path: Path) -> None:
    rows = [{"epoch": e, "loss": 1.0, "val_loss": 2.0} for _ in range(2) for e in range(12)]
    runs = read_runs(write(tmp_path, "training.log", as_csv(rows)))
    assert [run.x_axis for run in runs] == ["epoch", "epoch"]


@pytest.mark.parametrize("seed", range(20))
def test_superseding_leaves_strictly_rising_steps(seed: int) -> None:
    random = np.random.default_rng(seed)
    stretches, last = [], 0
    for _ in range(random.integers(1, 6)):
        first = int(random.integers(max(0, last // 2), last + 1)) // 10 * 10
        last = first + int(random.integers(20, 60)) * 10
        stretches.append(np.arange(first, last, 10))
    step = np.concatenate(stretches)
    seams, _ = find_seams(step)
    if any(seam.kind == "restart" for seam in seams):
        pytest.skip("this draw restarts")
    assert (np.diff(step[~superseded(step, seams)]) >= 0).all()


def test_an_evaluation_row_that_repeats_what_is_no_loss_is_no_duplicate(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    for step in range(0, 500, 10):
        same = {"step": step, "learning_rate": 1e-4, "gpu_mem": 40.0 + step % 3, "is_warmup": step < 50}
        rows.append({**same, "loss": 5.0 - step / 200, "epoch": step / 100})
        rows.append({**same, "eval_loss": 5.1 - step / 200, "gpu_mem": 41.5, "epoch": step / 100 + 0.01})
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert kinds(run) == []
    assert len(run.series["eval/loss"]) == 50


def test_a_loss_that_is_repeated_as_it_was_is_no_second_value(tmp_path: Path) -> None:
    rows = [{"step": s, "loss": 5.0 - s / 200, "eval_loss": 1.0 + k} for s in range(0, 100, 10) for k in range(1)]
    rows += [{"step": 90, "loss": 5.0 - 90 / 200, "eval_loss": 9.0}]
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    note = _note(run, "duplicate_step")
    assert (note.count, note.start_step, note.end_step) == (1, 90, 90)
    same = only(write(tmp_path, "b.jsonl", as_jsonl([*rows[:-1], rows[-2]])))
    assert kinds(same) == []


@pytest.mark.parametrize(("rows_each", "last"), [(3, 3), (4, 4), (4, 1)])
def test_equally_many_rows_at_every_step_are_micro_batches(rows_each: int, last: int, tmp_path: Path) -> None:
    rows = [{"step": s, "loss": 5.0 - s / 100 + k / 1000} for s in range(100) for k in range(rows_each)]
    rows = rows[: len(rows) - (rows_each - last)]
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert kinds(run) == ["micro_batches"]
    assert f"every step has {rows_each} rows" in run.notes[0].message
    assert run.series["train/loss"].value[0] == 5.0 + (rows_each - 1) / 1000


def test_two_rows_at_every_step_are_two_writers(tmp_path: Path) -> None:
    rows = [{"step": s, "loss": 5.0 - s / 100 + k / 1000} for s in range(100) for k in range(2)]
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert kinds(run) == ["duplicate_step"]


def test_one_step_with_a_row_too_many_is_a_duplicate(tmp_path: Path) -> None:
    rows = [{"step": s, "loss": 5.0 - s / 100 + k / 1000} for s in range(100) for k in range(2 if s == 50 else 1)]
    assert _note(only(write(tmp_path, "a.jsonl", as_jsonl(rows))), "duplicate_step").start_step == 50


def test_a_step_column_that_stands_still_is_named(tmp_path: Path) -> None:
    rows = [{"step": 0, "loss": 5.0 - s / 100} for s in range(50)]
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert run.x_axis == "row"
    assert run.notes[0].message == "the column 'step' says 0 on every row, so its rows are counted from 0"
