"""Tables: rows of numbers under a line of names, some cells of which are blank, and tables that hold no metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainscope.readers import read_runs

from .logs import points, run_of_text
from .printed import loss_at


@pytest.mark.parametrize(
    ("head", "row", "blank"),
    [
        (" step   loss   acc   lr", "{:5d} {:.4f} {} 1e-4", "  -  "),
        (" step   loss   acc   lr", "{:5d} {:.4f} {} 1e-4", "n/a"),
        ("| step | loss | acc |\n|---|---|---|", "| {} | {:.4f} | {} |", ""),
        ("| step | loss | acc | lr |\n|---|---|---|---|", "| {} | {:.4f} | {} | 0.1 |", "    "),
    ],
)
def test_rows_with_a_blank_cell_keep_their_other_numbers(tmp_path: Path, head: str, row: str, blank: str) -> None:
    log = tmp_path / "train.log"
    rows = [row.format(i, 2 - i / 100, f"{0.5 + i / 1000:.3f}" if i % 3 else blank) for i in range(90)]
    log.write_text("\n".join([head, *rows]), encoding="utf-8")
    (run,) = read_runs(log)
    assert run.series["train/loss"].step.tolist() == list(range(90))
    assert run.series["train/accuracy"].step.tolist() == [i for i in range(90) if i % 3]
    assert run.series["train/accuracy"].value[0] == 0.501


def test_a_table_of_how_many_samples_there_are_is_no_metric() -> None:
    rule = "|:------:|:------|:------:|:------|\n"
    text = "|  category  | #instances |  category  | #instances |\n" + rule
    text += "|  person    | 4657       |  dog       | 8341       |\n"
    for i in range(1, 41):
        text += f"iter: {20 * i}  total_loss: {loss_at(i)}  lr: 0.01\n"
        if i % 4 == 0:
            text += f"| category | AP | category | AP |\n{rule}| person | {i}.5 | dog | {i}.25 |\n"
    run = run_of_text(text)
    (person,) = [name for name in run.series if "person" in name]
    assert points(run, person) == [(20 * i, i + 0.5) for i in range(4, 41, 4)]
