from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from trainscope.core.run import Run, Series
from trainscope.core.settings import Settings
from trainscope.report.build import Judged, build_document, number, portable, run_id
from trainscope.report.document import Document
from trainscope.report.pipeline import Analysis
from trainscope.report.schema import schema_text

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads(schema_text())


def no_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def test_the_published_schema_is_the_one_the_types_make():
    published = (ROOT / "schemas" / "findings-1.schema.json").read_text(encoding="utf-8")
    assert published == schema_text(), "run: python -m trainscope.report.schema > schemas/findings-1.schema.json"


def test_the_schema_is_itself_valid():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_a_document_is_valid_json_and_fits_the_schema(several: Analysis):
    data = json.loads(several.document.to_json(), parse_constant=no_constant)
    jsonschema.validate(data, SCHEMA)


def test_a_document_reads_back_to_itself(several: Analysis):
    text = several.document.to_json()
    assert Document.model_validate_json(text) == several.document
    assert Document.model_validate_json(text).to_json() == text


def test_a_document_of_the_first_minor_version_still_fits():
    old = json.loads((ROOT / "tests" / "golden" / "report" / "document-1.0.json").read_text(encoding="utf-8"))
    jsonschema.validate(old, SCHEMA)
    assert Document.model_validate(old).runs[0].findings[0].peak_step == 412


def test_a_document_of_a_later_minor_version_fits_too(several: Analysis):
    data = json.loads(several.document.to_json())
    data["schema_version"] = "1.99"
    data["new_field"] = {"a": 1}
    data["runs"][0]["findings"][0]["confidence"] = 0.9
    jsonschema.validate(data, SCHEMA)
    assert Document.model_validate(data).runs[0].findings == several.document.runs[0].findings


@pytest.mark.parametrize(
    "break_it",
    [
        lambda d: d.update(schema_version="2.0"),
        lambda d: d["verdict"].update(status="maybe"),
        lambda d: d["counts"].update(error=-1),
        lambda d: d["runs"][0].pop("id"),
        lambda d: d["runs"][0]["findings"][0].update(severity="fatal"),
        lambda d: d["runs"][0]["findings"][0]["evidence"].update(x=[1]),
    ],
)
def test_the_schema_refuses_what_the_contract_forbids(several: Analysis, break_it):
    data = json.loads(several.document.to_json())
    break_it(data)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, SCHEMA)


def test_non_finite_numbers_become_words(analysis: Analysis):
    data = json.loads(analysis.document.to_json(), parse_constant=no_constant)
    (run,) = data["runs"]
    assert run["findings"][0]["evidence"]["score"] == "inf"
    assert run["config"]["clip"] == "inf"
    assert [number(x) for x in (math.nan, math.inf, -math.inf, 1.5, 2)] == ["nan", "inf", "-inf", 1.5, 2]


def test_numpy_scalars_become_plain_numbers():
    assert type(number(np.float32(0.5))) is float
    assert type(number(np.int64(7))) is int


def test_metric_numbers_are_those_of_the_series(analysis: Analysis, spiky_run: Run):
    metrics = {m.name: m for m in analysis.document.runs[0].metrics}
    loss = spiky_run.series["train/loss"].value
    told = metrics["train/loss"]
    assert (told.count, told.non_finite) == (200, 2)
    assert (told.first, told.last) == (loss[0], loss[-1])
    assert (told.min, told.max) == (np.nanmin(loss), np.nanmax(loss))


def test_the_count_of_steps_is_that_of_distinct_steps(analysis: Analysis):
    steps = analysis.document.runs[0].steps
    assert (steps.first, steps.last, steps.count) == (0, 398, 200)


def test_an_empty_series_has_no_numbers():
    run = Run("r", "s", "csv", {"x": Series("x", np.array([]), np.array([]))})
    (entry,) = build_document([Judged(run, _nothing())], Settings()).runs
    assert entry.metrics[0].model_dump() == {
        "name": "x", "count": 0, "first": None, "last": None, "min": None, "max": None, "non_finite": 0,
    }  # fmt: skip
    assert entry.steps.first is None


def _nothing():
    from trainscope.detectors import Judgement

    return Judgement((), ())


def test_an_id_is_of_the_content_and_not_of_the_place(spiky_run: Run):
    assert run_id(spiky_run) == run_id(replace(spiky_run, source="elsewhere.csv", format="jsonl"))
    assert run_id(spiky_run) != run_id(replace(spiky_run, name="other"))
    loss = spiky_run.series["train/loss"]
    moved = Series(loss.name, loss.step + 1, loss.value)
    assert run_id(spiky_run) != run_id(replace(spiky_run, series={**spiky_run.series, loss.name: moved}))
    assert len(run_id(spiky_run)) == 12
    assert set(run_id(spiky_run)) <= set("0123456789abcdef")


def test_an_id_does_not_depend_on_the_order_of_series_or_the_payload_of_a_nan(spiky_run: Run):
    backwards = dict(reversed(spiky_run.series.items()))
    assert run_id(replace(spiky_run, series=backwards)) == run_id(spiky_run)
    loss = spiky_run.series["train/loss"]
    value = loss.value.copy()
    value[np.isnan(value)] = np.frombuffer(b"\x01\x00\x00\x00\x00\x00\xf8\xff", dtype="<f8")[0]
    odd = Series(loss.name, loss.step, value)
    assert run_id(replace(spiky_run, series={**spiky_run.series, loss.name: odd})) == run_id(spiky_run)


def test_the_same_log_twice_keeps_two_ids(judged: Judged):
    document = build_document([judged, judged], Settings())
    assert len({run.id for run in document.runs}) == 2
    assert document.runs[1].id.startswith(document.runs[0].id)


def test_findings_that_share_a_fingerprint_are_numbered(judged: Judged):
    twice = replace(judged.judgement, findings=judged.judgement.findings[:1] * 2)
    (run,) = build_document([replace(judged, judgement=twice)], Settings()).runs
    assert [f.occurrence for f in run.findings] == [1, 2]
    assert len({f.fingerprint for f in run.findings}) == 1


def test_absolute_paths_do_not_reach_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert portable(str(tmp_path / "runs" / "a.csv")) == "runs/a.csv"
    assert portable("/somewhere/else/runs/a.csv") == "runs/a.csv"
    assert portable("runs/a.csv") == "runs/a.csv"
    assert portable("../a.csv") == "../a.csv"
    assert portable("-") == "-"


def test_judged_detectors_are_those_that_were_not_skipped(analysis: Analysis):
    (run,) = analysis.document.runs
    assert run.judged == ["non_finite", "spikes", "no_eval", "plateau"]


SCRIPT = """
import sys
import numpy as np
from trainscope.core.run import Run, Series
from trainscope.core.settings import Settings
from trainscope.report.pipeline import analyze_runs
from trainscope.report.renderers import OUTPUTS, render
step = np.arange(500)
names = ["train/loss", "eval/loss", "a", "b", "train/grad_norm"]
series = {n: Series(n, step, np.sin(step / 9) + 2 + i) for i, n in enumerate(names)}
series["a"].value[7] = np.nan
run = Run("r", "r.csv", "csv", series, config={"x": 1, "y": "z"})
a = analyze_runs([run, run], Settings())
sys.stdout.buffer.write("".join(render(o, a.document, a.runs) for o in OUTPUTS).encode())
"""


@pytest.mark.slow
def test_every_output_has_the_same_bytes_in_every_process():
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1
    assert len(outputs.pop()) > 10_000
