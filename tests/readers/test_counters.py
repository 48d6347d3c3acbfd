from __future__ import annotations

from pathlib import Path

from .logs import as_csv, as_jsonl, kinds, only, points, write


def test_a_batch_counter_of_each_epoch_is_counted_on(tmp_path: Path) -> None:
    rows = [{"epoch": e, "batch": b, "loss": float(e * 10 + b)} for e in range(4) for b in range(10)]
    run = only(write(tmp_path, "a.csv", as_csv(rows)))
    assert points(run, "train/loss") == [(i, float(i)) for i in range(40)]
    assert kinds(run) == ["rebuilt_step"]


def test_a_counter_from_one_in_tens_is_counted_on_too(tmp_path: Path) -> None:
    rows = [{"epoch": e, "iter": b, "loss": 1.0} for e in range(1, 4) for b in range(10, 101, 10)]
    run = only(write(tmp_path, "a.csv", as_csv(rows)))
    assert run.series["train/loss"].step.tolist() == list(range(10, 301, 10))


def test_a_restart_at_epoch_zero_is_no_counter_of_each_epoch(tmp_path: Path) -> None:
    from trainscope.readers import read_runs

    rows = [{"epoch": s // 10, "step": s, "loss": 1.0} for _ in range(2) for s in range(40)]
    assert len(read_runs(write(tmp_path, "a.csv", as_csv(rows)))) == 2


def test_evaluations_that_count_epochs_get_the_step_they_were_made_at(tmp_path: Path) -> None:
    rows: list[dict[str, float]] = []
    for epoch in range(1, 6):
        rows += [{"lr": 0.1, "loss": 1.0, "epoch": epoch, "step": (epoch - 1) * 100 + i} for i in range(10, 101, 10)]
        rows.append({"coco/bbox_mAP": 0.1 * epoch, "step": epoch})
    run = only(write(tmp_path, "scalars.json", as_jsonl(rows)))
    assert run.series["coco/bbox_mAP"].step.tolist() == [100, 200, 300, 400, 500]
    assert kinds(run) == ["assumed_step"]


def test_evaluations_with_real_steps_keep_them(tmp_path: Path) -> None:
    rows = [{"step": i, "loss": 1.0} for i in range(100)] + [{"step": i, "eval_loss": 2.0} for i in range(0, 100, 25)]
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert run.series["eval/loss"].step.tolist() == [0, 25, 50, 75]


def test_one_value_a_row_becomes_one_column_a_metric(tmp_path: Path) -> None:
    rows = [
        {"step": i, "tag": tag, "value": i + offset}
        for i in range(6)
        for tag, offset in (("train/loss", 0.5), ("eval/loss", 0.25))
    ]
    run = only(write(tmp_path, "scalars.csv", as_csv(rows)))
    assert points(run, "train/loss") == [(i, i + 0.5) for i in range(6)]
    assert points(run, "eval/loss") == [(i, i + 0.25) for i in range(6)]
    assert kinds(run) == []


def test_a_tensorboard_download_is_named_by_its_file(tmp_path: Path) -> None:
    text = "Wall time,Step,Value\n" + "".join(f"{1.7e9 + i},{i},{2.5}\n" for i in range(4))
    run = only(write(tmp_path, "run-gpt2-tag-train_loss.csv", text))
    assert points(run, "train/loss") == [(i, 2.5) for i in range(4)]
    assert run.series["train/loss"].time.tolist() == [1.7e9 + i for i in range(4)]
