"""W&B history, W&B chart, W&B table of runs, Lightning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trainscope.core.errors import ReadError
from trainscope.readers import read_runs

from .logs import kinds, only, points, write

HISTORY = "_step,_runtime,_timestamp,train/loss,eval/loss\n" + "".join(
    f"{i},{i * 0.5},{1.7e9 + i * 0.5},{'' if i % 5 == 4 else 2.0},{3.0 if i % 5 == 4 else ''}\n" for i in range(20)
)
_TWINS = ("", "__MIN", "__MAX")


def _chart() -> str:
    lines = [["Step", *(f"{name}{twin}" for name in ("run a - train/loss", "b - c - loss") for twin in _TWINS)]]
    lines += [[str(i), *[str(3 - i / 10)] * 3, *["" if i > 4 else "7"] * 3] for i in range(10)]
    return "".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines)


RUNS = '"Name","State","Created","Runtime","train/loss"\n"a","finished","2026-05-25T14:08:33.000Z","732","1.5"\n'


def test_a_wandb_history_has_unix_times(tmp_path: Path) -> None:
    run = only(write(tmp_path, "wandb.csv", HISTORY))
    assert run.format == "wandb"
    assert points(run, "eval/loss") == [(4, 3.0), (9, 3.0), (14, 3.0), (19, 3.0)]
    assert run.series["eval/loss"].time.tolist() == [1.7e9 + i * 0.5 for i in (4, 9, 14, 19)]
    assert kinds(run) == []


def test_the_trainers_own_counter_beats_wandbs(tmp_path: Path) -> None:
    lines = [
        f"{line},{'trainer/global_step' if i == 0 else (i - 1) * 50}" for i, line in enumerate(HISTORY.splitlines())
    ]
    run = only(write(tmp_path, "wandb.csv", "\n".join(lines)))
    assert run.series["train/loss"].step[:2].tolist() == [0, 50]


def test_a_counter_that_half_of_the_rows_lack_does_not(tmp_path: Path) -> None:
    lines = [
        f"{line},{'global_step' if i == 0 else i * 50 if i % 2 else ''}" for i, line in enumerate(HISTORY.splitlines())
    ]
    run = only(write(tmp_path, "wandb.csv", "\n".join(lines)))
    assert run.series["train/loss"].step[:2].tolist() == [0, 1]


def test_a_chart_export_is_one_run_for_each_column(tmp_path: Path) -> None:
    first, second = read_runs(write(tmp_path, "chart.csv", _chart()))
    assert (first.name, second.name) == ("run a", "b - c")
    assert [len(run.series["train/loss"]) for run in (first, second)] == [10, 5]
    assert kinds(second) == ["twin_columns"]
    assert not np.isnan(second.series["train/loss"].value).any()


def test_a_table_of_runs_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"table of runs .* export the history of one run") as caught:
        read_runs(write(tmp_path, "wandb_export.csv", RUNS))
    assert "\n" not in str(caught.value)


def test_lightning_rows_interleave_and_twins_keep_their_names(tmp_path: Path) -> None:
    text = "epoch,step,train_loss_epoch,train_loss_step,val_loss\n"
    for i in range(1, 21):
        text += f"{i // 5},{i * 10},,{1 / i},\n"
        if i % 5 == 0:
            text += f"{i // 5},{i * 10},,,0.5\n{i // 5},{i * 10},0.25,,\n"
    run = only(write(tmp_path, "lightning_logs/version_3/metrics.csv", text))
    assert (run.format, run.name) == ("lightning", "version_3")
    assert len(run.series["train/loss"]) == 20
    assert points(run, "train_loss_epoch") == [(50, 0.25), (100, 0.25), (150, 0.25), (200, 0.25)]
    assert kinds(run) == []
