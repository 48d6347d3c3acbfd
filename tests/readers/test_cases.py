"""The generated cases: what must be read is read, what must be refused is refused, damage is noted."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainscope.core.errors import TrainscopeError
from trainscope.readers import read_runs

from .logs import kinds, only

# Readable, and judged by nobody: the gate refuses what has no metric to judge.
READ_ALTHOUGH_REFUSAL_IS_ALLOWED = {"in_nested_jsonl", "in_wrong_metric_csv", "in_truncated_state"}


@pytest.fixture(scope="session")
def cases(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, Any]]]:
    spec = importlib.util.spec_from_file_location("make_cases", shared / "cases" / "make_cases.py")
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    folder = tmp_path_factory.mktemp("cases")
    maker.semantic(str(folder))
    maker.inputs(str(folder))
    return folder, maker.EXP


@pytest.mark.slow
def test_inputs_are_read_or_refused_as_they_should_be(cases: tuple[Path, dict[str, dict[str, Any]]]) -> None:
    folder, expected = cases
    wrong = []
    for name, case in expected.items():
        if case["group"] != "input":
            continue
        path = folder / ("in_does_not_exist.jsonl" if name == "in_missing_file" else case["file"])
        try:
            runs = read_runs(path)
        except TrainscopeError as error:
            if case["want"] != "error" or "\n" in str(error):
                wrong.append((name, str(error)))
            continue
        (run,) = runs
        noted = bool(set(kinds(run)) - {"encoding"})
        finite = all(np.isfinite(s.value).all() for s in run.series.values())
        if case["want"] == "error" and name not in READ_ALTHOUGH_REFUSAL_IS_ALLOWED:
            wrong.append((name, "read"))
        if case["want"] == "notice" and not noted:
            wrong.append((name, "not noted"))
        if case["want"] == "healthy" and (
            not finite or (noted and name not in ("in_state_summary_row", "in_no_step_jsonl"))
        ):
            wrong.append((name, kinds(run)))
        nan = [e for e in case["expect"] if e["id"] == "nan"]
        if nan and finite:
            wrong.append((name, "no NaN"))
    assert wrong == []


def _oracle(path: Path) -> list[dict[str, Any]]:
    text = path.read_text()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    if path.suffix == ".csv":
        return [{k: float(v) for k, v in row.items() if v != ""} for row in csv.DictReader(io.StringIO(text))]
    return json.loads(text)["log_history"]


NAMES = {
    "loss": "train/loss",
    "eval_loss": "eval/loss",
    "grad_norm": "train/grad_norm",
    "learning_rate": "learning_rate",
    "step_time": "train/step_time",
    "tokens_per_second": "train/tokens_per_second",
}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["jsonl", "csv", "trainer_state.json"])
def test_every_value_is_what_the_standard_library_reads(
    form: str, cases: tuple[Path, dict[str, dict[str, Any]]]
) -> None:
    folder, expected = cases
    semantic = [name for name, case in expected.items() if case["group"] == "semantic"]
    for name in semantic[::3]:
        path = folder / f"{name}.{form}"
        run, rows = only(path), _oracle(path)
        for raw, canonical in NAMES.items():
            last = {int(row["step"]): float(row[raw]) for row in rows if raw in row}
            if not last:
                continue
            series = run.series[canonical]
            assert series.step.tolist() == sorted(last)
            assert np.array_equal(series.value, [last[s] for s in sorted(last)], equal_nan=True), (name, raw)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["jsonl", "csv", "trainer_state.json"])
@pytest.mark.parametrize(
    ("name", "kind", "start", "end"),
    [("resumed_overlap", "rewind", 10010, 12000), ("out_of_order", "out_of_order", 10, 20000)],
)
def test_order_is_noted_where_it_is_broken(
    form: str, name: str, kind: str, start: int, end: int, cases: tuple[Path, dict[str, dict[str, Any]]]
) -> None:
    (note,) = only(cases[0] / f"{name}.{form}").notes
    assert note.kind == kind
    assert note.start_step is not None
    assert note.end_step is not None
    assert start <= note.start_step < note.end_step <= end
    assert note.end_step - note.start_step > 0.9 * (end - start)
