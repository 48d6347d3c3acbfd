"""What the lines of a text log count, and where a count begins again."""

from __future__ import annotations

from pathlib import Path

from trainscope.readers import read_runs

from .logs import kinds, points, run_of_text, runs_of_text, write
from .printed import loss_at


def test_several_launches_in_one_text_are_several_runs(tmp_path: Path) -> None:
    one = "".join(f"step {i}/100 | loss {loss_at(i)}\n" for i in range(1, 101))
    runs = read_runs(write(tmp_path, "a.log", "starting\n" + one + "Traceback (most recent call last):\n" + one))
    assert [len(run.series["train/loss"]) for run in runs] == [100, 100]
    assert all("restart" in kinds(run) for run in runs)


def test_a_resume_replaces_the_steps_that_were_lost() -> None:
    lines = [f"step {i} loss {loss_at(i)}" for i in range(1, 101)]
    again = [f"step {i} loss {loss_at(i) + 1}" for i in range(81, 151)]
    run = run_of_text("\n".join([*lines, "loading checkpoint", *again]))
    assert "rewind" in kinds(run)
    assert run.series["train/loss"].value[80] == loss_at(81) + 1


def test_what_ends_one_launch_and_what_begins_the_next_are_kept_apart() -> None:
    launch = "".join(f"step:{i}/90 train_loss:{loss_at(i)} time:{i}ms\n" for i in range(1, 81))
    text = "step:0/90 val_loss:9.0 time:0ms\n" + launch + "step:84/90 val_loss:2.5 time:84ms\n"
    first, second = runs_of_text(2 * text)
    assert points(first, "eval/loss") == points(second, "eval/loss") == [(0, 9.0), (84, 2.5)]
    assert len(first.series["train/loss"]) == len(second.series["train/loss"]) == 80
