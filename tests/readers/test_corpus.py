"""Real public logs: each is read, and its values are those that the standard library reads."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainscope.core.errors import ReadError
from trainscope.readers import read_runs

from .logs import kinds, only

pytestmark = pytest.mark.slow

# The kinds of the corpus whose lines are free text.
FREE_TEXT = (
    "cyclegan_losslog deepspeed_log llmc_mainlog llmc_text megatron_log modded_nanogpt mxnet_log olmo_text "
    "paramgolf_text text_generic torch7_log wandb_outputlog baselines_log"
)


@pytest.fixture(scope="module")
def real(shared: Path) -> list[dict[str, Any]]:
    folder = shared / "corpus" / "real"
    files = json.loads((folder / "manifest.json").read_text())["files"]
    return [entry | {"path": folder / entry["file"]} for entry in files]


def _structured(real: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [e for e in real if e["kind"] not in FREE_TEXT.split() and e["name"] != "comp3242_wandb"]


def test_every_structured_log_is_read(real: list[dict[str, Any]]) -> None:
    for entry in _structured(real):
        for run in read_runs(entry["path"]):
            assert run.series, entry["file"]


def test_free_text_is_read_as_text(real: list[dict[str, Any]]) -> None:
    for entry in real:
        if entry["kind"] in FREE_TEXT.split():
            runs = read_runs(entry["path"])
            assert {run.format for run in runs} == {"text"}, entry["file"]
            assert all(run.series for run in runs), entry["file"]


def test_a_table_of_runs_is_refused(real: list[dict[str, Any]]) -> None:
    (entry,) = [e for e in real if e["name"] == "comp3242_wandb"]
    with pytest.raises(ReadError, match="table of runs"):
        read_runs(entry["path"])


def test_the_primary_metric_has_the_points_the_annotator_counted(real: list[dict[str, Any]]) -> None:
    # The annotator did not count blank cells that stand for NaN, and counted a file of several runs as one.
    for entry in _structured(real):
        runs = read_runs(entry["path"])
        every = [series for run in runs for series in run.series.values()]
        sizes = {len(s) for s in every} | {int(np.isfinite(s.value).sum()) for s in every}
        sizes.add(sum(len(next(iter(run.series.values()))) for run in runs))
        wanted = entry["stats"]["n_points"]
        assert any(abs(wanted - size) <= 1 for size in sizes), (entry["file"], wanted, sorted(sizes))


def test_values_are_those_of_the_csv_module(real: list[dict[str, Any]]) -> None:
    checked = 0
    for entry in _structured(real):
        if entry["kind"] not in ("algoperf_csv", "lightning_csv", "keras_csv", "yolo_csv", "baselines_csv"):
            continue
        run = only(entry["path"])
        table = list(csv.DictReader(io.StringIO(entry["path"].read_text()), skipinitialspace=True))
        want = sorted(
            float(cell) for row in table for cell in row.values() if cell and cell.strip() and _is_float(cell)
        )
        have = {v for s in run.series.values() for v in s.value.tolist()}
        steps = {float(v) for s in run.series.values() for v in s.step.tolist()}
        times = {v for s in run.series.values() if s.time is not None for v in s.time.tolist()}
        known = have | steps | times
        lost = [v for v in want if not math.isnan(v) and v not in known]
        assert len(lost) <= 0.01 * len(want), (entry["file"], lost[:5])
        checked += 1
    assert checked > 15


def _is_float(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_values_are_those_of_the_json_module(real: list[dict[str, Any]]) -> None:
    for entry in real:
        if entry["kind"] != "hf_trainer_state":
            continue
        run = only(entry["path"])
        history = json.loads(entry["path"].read_text())["log_history"]
        want = {e["step"]: e["loss"] for e in history if isinstance(e.get("loss"), float)}
        series = run.get("train/loss")
        have = {} if series is None else dict(zip(series.step.tolist(), series.value.tolist(), strict=True))
        assert have == pytest.approx(want, nan_ok=True, rel=0, abs=0), entry["file"]
        assert set(kinds(run)) <= {"summary_row", "text_column"}, entry["file"]


def test_all_runs_of_the_organic_corpus_have_their_steps(shared: Path) -> None:
    files = sorted((shared / "corpus" / "organic").glob("*.csv"))
    assert len(files) >= 60
    for file in files:
        run = only(file)
        assert run.x_axis == "step", file.name
        assert set(kinds(run)) <= {"null_value"}, (file.name, kinds(run))
        assert len(run.series["train/loss"]) == len(file.read_text().splitlines()) - 1
