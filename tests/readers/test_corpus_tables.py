"""Real public tables and JSON lines, number by number, against the standard library."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainscope.core.metrics import canonical_names
from trainscope.readers import read_runs

from .readings import Points, assert_same

pytestmark = pytest.mark.slow


# Where the step of a table is; "" where its rows are counted.
TABLES = {
    "lightning_csv": "step",
    "yolo_csv": "epoch",
    "keras_csv": "epoch",
    "csv_generic": "epoch",
    "baselines_csv": "step",
    "monitor_csv": "",
    "algoperf_csv": "global_step",
}


def test_every_cell_of_a_table_is_at_its_step(shared: Path) -> None:
    folder = shared / "corpus" / "real"
    checked = 0
    for file in sorted(p for kind in TABLES for p in (folder / kind).iterdir()):
        step = TABLES[file.parent.name]
        text = re.sub(r"^#.*\n", "", file.read_text())
        rows = list(csv.DictReader(io.StringIO(text), skipinitialspace=True))
        if step and step not in rows[0]:
            continue  # a table without a header
        columns: dict[str, Points] = {}
        for i, row in enumerate(rows):
            for key, cell in row.items():
                if key != step and (cell or "").strip():
                    columns.setdefault(key, {})[int(float(row[step])) if step else i] = float(cell)
        (run,) = read_runs(file)
        counts = {key: len(points) for key, points in columns.items()}
        for key, name in canonical_names(list(columns), counts).items():
            if name in run.series:
                series = run.series[name]
                have = dict(zip(series.step.tolist(), series.value.tolist(), strict=True))
                # A blank cell between numbers stands for NaN where NaN is all that comes after; `test_absence` has it.
                given = {s: v for s, v in have.items() if s in columns[key]}
                np.testing.assert_equal(given, columns[key], f"{file.name} {key}")
                assert all(np.isnan(v) for s, v in have.items() if s not in columns[key]), (file.name, key)
                checked += 1
    assert checked > 200


def _flat(row: dict[str, Any]) -> dict[str, float]:
    numbers = {k: v["mean"] if isinstance(v, dict) else v for k, v in row.items()}
    return {k: float(v) for k, v in numbers.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        ("llamafactory_jsonl", "current_steps"),
        ("jsonl_generic", "step"),
        ("stylegan_jsonl", "Progress/tick"),
        ("hf_trainer_state", "step"),
    ],
)
def test_every_number_of_json_is_at_its_step(kind: str, step: str, shared: Path) -> None:
    checked = 0
    for file in sorted((shared / "corpus" / "real" / kind).iterdir()):
        text = file.read_text()
        rows = json.loads(text)["log_history"] if kind == "hf_trainer_state" else map(json.loads, text.splitlines())
        columns: dict[str, Points] = {}
        for row in map(_flat, rows):
            if step not in row or "train_runtime" in row:
                continue
            for key, value in row.items():
                if key != step:
                    columns.setdefault(key, {})[int(row[step])] = value
        (run,) = read_runs(file)
        for key, name in canonical_names(list(columns), {k: len(p) for k, p in columns.items()}).items():
            if name in run.series:
                assert_same(run, name, columns[key])
                checked += 1
    assert checked >= 7
