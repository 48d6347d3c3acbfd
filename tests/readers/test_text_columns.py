"""Rows of numbers under a line of names, of which some cells are blank."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainscope.readers import read_runs


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
