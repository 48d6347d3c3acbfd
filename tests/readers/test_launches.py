from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trainscope.core.run import Note
from trainscope.readers import read_runs

from .logs import as_csv, as_jsonl, write


def launch(points: int, begin: float = 4.0, floor: float = 0.5) -> list[dict[str, float]]:
    """Return the rows of one launch, a row every ten steps."""
    return [{"step": 10 * i, "loss": float(floor + (begin - floor) * np.exp(-i / 15.0))} for i in range(points)]


def given_up(path: Path) -> list[list[Note]]:
    return [[note for note in run.notes if note.kind == "given_up"] for run in read_runs(path)]


@pytest.mark.parametrize(("name", "text"), [("a.jsonl", as_jsonl), ("a.csv", as_csv)])
def test_a_launch_that_was_begun_anew_is_noted_on_the_one_that_did_it_over(tmp_path: Path, name: str, text) -> None:
    none, (note,) = given_up(write(tmp_path, name, text(launch(40) + launch(120))))
    assert none == []
    assert (note.count, note.start_step, note.end_step) == (40, 0, 0)
    assert note.message == (
        "training began anew at step 0: the launch before had come to step 390, this one went on to 1190, "
        "and its loss began at 3.563, not at the 0.797 that the other had reached"
    )


def test_each_of_several_that_were_given_up_is_noted(tmp_path: Path) -> None:
    notes = given_up(write(tmp_path, "a.jsonl", as_jsonl(launch(30) + launch(60) + launch(120))))
    assert [[note.count for note in run] for run in notes] == [[], [30], [60]]


@pytest.mark.parametrize(
    "launches",
    [
        [launch(100), launch(120)],
        [launch(120), launch(40)],
        [launch(19), launch(120)],
        [launch(60), launch(120, begin=0.6)],
        [launch(60, begin=0.5, floor=4.0), launch(120)],
        [launch(20 + 10 * i) for i in range(5)],
    ],
    ids=["as long", "shorter", "hardly begun", "goes on from its weights", "got worse", "a search"],
)
def test_other_launches_in_one_file_are_not_noted(tmp_path: Path, launches: list[list[dict[str, float]]]) -> None:
    rows = [row for rows in launches for row in rows]
    assert given_up(write(tmp_path, "a.jsonl", as_jsonl(rows))) == [[] for _ in launches]


def test_evaluations_alone_are_not_judged(tmp_path: Path) -> None:
    rows = [{"step": row["step"], "eval_loss": row["loss"]} for row in launch(40) + launch(120)]
    assert given_up(write(tmp_path, "a.jsonl", as_jsonl(rows))) == [[], []]
