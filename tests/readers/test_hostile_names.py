"""Names that must never break reading, nor get into a message unescaped."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from trainscope.readers import read_runs

from .logs import as_jsonl, write


@pytest.fixture(scope="module")
def names(shared: Path) -> list[str]:
    return list(json.loads((shared / "cases" / "hostile_names.json").read_text()))


def test_metrics_of_any_name_are_read(names: list[str], tmp_path: Path) -> None:
    for name in names:
        rows = [{"step": i, "loss": 1.0, name: 2.0} for i in range(1, 30)]
        (run,) = read_runs(write(tmp_path, "a.jsonl", as_jsonl(rows)))
        assert len(run.series["train/loss"]) == 29, name
        assert all(note.message.isprintable() for note in run.notes), name


def test_table_columns_of_any_name_are_read(names: list[str], tmp_path: Path) -> None:
    for name in names:
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(["step", "loss", name])
        writer.writerows([i, 1.0, "text" if i == 3 else 2.0] for i in range(1, 30))
        path = write(tmp_path, "a.csv", out.getvalue().encode("utf-8", "surrogatepass"))
        (run,) = read_runs(path)
        assert len(run.series["train/loss"]) >= 28, name
        assert all(note.message.isprintable() for note in run.notes), name


def test_runs_of_any_name_are_read(names: list[str], tmp_path: Path) -> None:
    rows = [{"step": i, "run": name, "loss": 1.0} for name in names if name for i in range(3)]
    runs = read_runs(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    # Blank names and "null" are one run without a name, "Infinity" and "1e999" one number.
    assert len(runs) >= len({name for name in names if name.strip()}) - 2
    assert all(len(run.series["train/loss"]) == 3 for run in runs)
